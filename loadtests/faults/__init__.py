"""The fault suite: engines that die, hang, lie and come back while requests flow through the gateway.

`python -m loadtests.faults` runs every scenario for about a minute, `--short` each of them once. Everything listens on
loopback, every load is bounded, and only processes that were started here are ended.

A request may fail only for a reason that the scenario allows and that what the replicas wrote down bears out; any other
failure is *avoidable*, and fails the suite.
"""
