"""What the connection shows: the engine's clock, and how long it keeps an idle connection."""

from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

from engines.profile import EngineKind
from gateway.doctor.asking import Answers, How, Question
from gateway.doctor.checks.check import of_site
from gateway.doctor.checks.reaching import health
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Site

SKEW: Final = 10.0
"""Seconds between two clocks that are worth a word."""


class Clock:
    """Its clock and ours agree."""

    name = "clock"

    def asks(self, site: Site) -> Sequence[Question]:
        """Anything: every answer has a date."""
        return (health(site),)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """The difference to the `Date` of the answer, which counts whole seconds."""
        heard = answers[health(site)]
        try:
            its = parsedate_to_datetime(heard.headers.get("date", "")).timestamp()
        except (ValueError, OverflowError):
            return
        off = its - heard.at
        if abs(off) > SKEW:
            ahead = "ahead of" if off > 0 else "behind"
            evidence = f"has a clock that is {abs(off):.0f} s {ahead} ours: times in logs and answers do not fit"
            yield of_site(
                Level.WARNING, site, self.name, evidence, "let both machines set their clocks by NTP (chronyc tracking)"
            )


class KeepAlive:
    """It keeps idle connections as long as the gateway counts on."""

    name = "keep_alive"

    def asks(self, site: Site) -> Sequence[Question]:
        """The health check, on a connection that is then left alone."""
        return (Question(health(site).path, how=How.IDLE),)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """Closed too soon: requests meet connections that are just being closed, and need a second try."""
        (question,) = self.asks(site)
        heard = answers[question]
        if heard.failure or heard.idle is None:
            return
        wanted = site.keep_alive
        evidence = f"closes an idle connection after {heard.idle:.1f} s; the gateway counts on {wanted:g} s"
        flag = f"start it with VLLM_HTTP_TIMEOUT_KEEP_ALIVE={wanted:g} or more in its environment"
        proxy = f"what stands before it must keep idle connections for {wanted:g} s or more (nginx: keepalive_timeout)"
        line = f"{site.at('keep_alive')}: {max(1.0, heard.idle):.0f}s"
        fix = f"{flag if site.settings.kind is EngineKind.VLLM else proxy}, or write {line}"
        yield of_site(Level.WARNING, site, self.name, evidence, fix)
