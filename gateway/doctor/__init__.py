"""Contract checks against live engines: whether they keep what the configuration promises, before traffic does.

`checks` say what to ask and judge the answers; they are pure. `examination` asks, within a stated budget; `results`
remembers the findings.
"""
