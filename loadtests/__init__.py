"""Load tests over the wire: simulated engines, the gateway and the load as processes of one machine.

`make loadtest` runs every scenario twice, once straight to the engines and once through the gateway, and writes a
report. Everything listens on loopback, every scenario is bounded in requests and in time, and only processes that were
started here are ended.
"""
