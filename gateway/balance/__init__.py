"""Who serves this request: pure decisions over endpoints, with time and randomness as arguments.

Nothing here reads a clock, sleeps, logs, or opens a socket. Shells ask (`Route.acquire`), act, and say how it went
(`Lease.end`); what changed on the way comes back as facts (`StateChange`) for them to log and count.
All times are monotonic seconds.
"""
