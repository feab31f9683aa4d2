"""Several serving processes on one port, watched by the process that started them.

The supervisor is forked into its members rather than starting programs: the settings have been read and checked once
and reach every member without a detour through files, secrets included; a member that died is replaced in the time of
a start without imports; and what was imported is in memory once. Nothing runs in the supervisor that a fork could
break: it has one thread and no event loop.
"""
