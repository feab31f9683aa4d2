"""What a check is."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.doctor.asking import Answers, Question
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Site, Subject


class SiteCheck(Protocol):
    """Looks at a replica as a whole."""

    @property
    def name(self) -> str:
        """What findings, and people, call it."""

    def asks(self, site: Site) -> Sequence[Question]:
        """What it wants to know."""

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """What follows from the answers to its questions."""


class ModelCheck(Protocol):
    """Looks at a model on a replica."""

    @property
    def name(self) -> str:
        """What findings, and people, call it."""

    def asks(self, subject: Subject) -> Sequence[Question]:
        """What it wants to know."""

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """What follows from the answers to its questions."""


def of_site(level: Level, site: Site, check: str, evidence: str, fix: str) -> Finding:
    """A finding about a replica."""
    return Finding(level, site.engine, "", check, f"{site.place} {evidence}", fix)


def of_model(level: Level, subject: Subject, check: str, evidence: str, fix: str) -> Finding:
    """A finding about a model."""
    return Finding(level, subject.site.engine, subject.name, check, evidence, fix)
