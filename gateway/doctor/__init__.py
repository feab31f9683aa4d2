"""Contract checks against live engines: whether they keep what the configuration promises, before traffic does.

`checks` say what to ask and judge the answers; they are pure. `examination` asks, within a stated budget; `results`
remembers the findings.
"""

from gateway.doctor.examination import Diagnosis, Examination
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Lines

__all__ = ["Diagnosis", "Examination", "Finding", "Level", "Lines"]
