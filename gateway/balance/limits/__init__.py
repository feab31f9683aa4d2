"""How much callers may ask for: rates, requests at once, budgets. Sans-I/O; time is an argument.

A request is charged to several accounts at once (its key's, its model's, everybody's): either to all, or it is refused
and charged to none. Rates are GCRA: an account owes time, each request or token adds to it, and what is owed may not
exceed the burst. So within any span of T seconds no more than burst + rate * T pass, and a full burst is there again
after as long as it takes to earn it.

Tokens are reserved by an estimate and settled by what was used, as if that had been known from the start; what a refund
would give beyond what is still owed is lost. So in any span, the tokens used by what was admitted in it are at most
burst + rate * T, plus what was given back in it from before, plus what the last ones used beyond their estimate.
"""
