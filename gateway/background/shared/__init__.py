"""Counts that several processes share through Redis.

Everything goes through one script, `exchange.lua`, in one batch at a time and process: requests that want to pass, what
ended ones have used, how many run, and now and then the usage and the load of endpoints. While a batch is under way the
next one gathers, so a busy gateway asks seldom and much. All names in Redis carry one hash tag, so that a cluster keeps
them in one slot and the script sees them all.
"""
