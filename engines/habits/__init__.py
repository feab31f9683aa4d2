"""What engines do otherwise than OpenAI, and what became of each such habit: the list behind `docs/engines.md`."""

from collections.abc import Mapping

from engines.habits.answers import ANSWERS
from engines.habits.habit import Habit, Treatment
from engines.habits.requests import REQUESTS
from engines.habits.service import FAILURES, SERVICE
from engines.habits.toolcalls import TOOL_CALLS

__all__ = ["HABITS", "Habit", "Treatment"]

HABITS: Mapping[str, tuple[Habit, ...]] = {
    "What they take": REQUESTS,
    "What they answer": ANSWERS,
    "Tool calls": TOOL_CALLS,
    "How they fail": FAILURES,
    "What they are besides": SERVICE,
}
"""By topic."""
