"""The checks, in the order in which they are reported.

Each is an object with a name, what it asks, and a pure function from what was heard to findings.
"""
