"""What the gateway says about itself: the log, its lines about requests, and the errors of late.

Nothing here, or in any call of it, ever holds answers or secrets, and prompts only where `log_prompts` asks for them.
"""

from gateway.logs.journal import Journal, RequestSummary
from gateway.logs.recent import Noted, RecentErrors
from gateway.logs.setup import LEVELS, Level, configure, level, printable, set_level

__all__ = [
    "LEVELS",
    "Journal",
    "Level",
    "Noted",
    "RecentErrors",
    "RequestSummary",
    "configure",
    "level",
    "printable",
    "set_level",
]
