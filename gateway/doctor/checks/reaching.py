"""Whether a replica can be reached, over TLS too, and says that it is well."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from engines.profile import Health
from gateway.doctor.asking import Answers, Heard, Question
from gateway.doctor.checks.check import of_site
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Site

SOON: Final = 14
"""Days before its end at which a certificate is worth a word."""

_DAY: Final = 86_400


def health(site: Site) -> Question:
    """How are you? The same question as the health checks ask while serving."""
    return Question(site.settings.health.path or site.profile.health.path)


class Reachable:
    """There is an answer to the health check."""

    name = "reachable"

    def asks(self, site: Site) -> Sequence[Question]:
        """The health check."""
        return (health(site),)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """No connection, no answer, or not ready. What is no health check of this kind is `Kind`'s to explain."""
        heard = answers[health(site)]
        if heard.failure:
            if not heard.trust:
                yield of_site(Level.ERROR, site, self.name, f"gives no answer: {heard.failure}", _remedy(site, heard))
            return
        told = site.profile.health.judge(heard.status)
        own = site.settings.health.path is not None
        if told is Health.READY or (own and heard.status < 300):
            return
        path = health(site).path
        if told is Health.NOT_READY:
            wait = "wait until it has loaded its model; its own log says what is missing"
            yield of_site(Level.ERROR, site, self.name, f"is not ready: {path} gives status {heard.status}", wait)
        elif own:
            fix = f"{site.at('health', 'path')}: leave it out, {site.profile.title} has {site.profile.health.path}"
            yield of_site(Level.ERROR, site, self.name, f"gives status {heard.status} for {path}", fix)
        else:
            fix = f"is there a {site.profile.title} at {site.at(*site.url_path)}?"
            yield of_site(Level.ERROR, site, self.name, f"gives status {heard.status} for {path}", fix)


class Tls:
    """Its certificate is trusted, names it, and lasts."""

    name = "tls"

    def asks(self, site: Site) -> Sequence[Question]:
        """The health check: its connection is looked at."""
        return (health(site),)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """A certificate that is refused, or soon will be."""
        heard = answers[health(site)]
        if heard.trust:
            yield of_site(Level.ERROR, site, self.name, f"is not trusted: {heard.failure}", _trust(site, heard.failure))
        elif heard.expires is not None:
            days = math.floor((heard.expires - heard.at) / _DAY)
            if days < SOON:
                yield of_site(
                    Level.WARNING, site, self.name, f"has a certificate that ends in {days} days", "renew it in time"
                )


def _remedy(site: Site, heard: Heard) -> str:
    line = site.at(*site.url_path)
    if heard.refused:
        return f"start the engine (check its --host and --port), or correct the address in {line}"
    if "TLS" in heard.failure:
        return f"{line}: http:// instead of https://, or switch TLS on in the engine"
    if "resolved" in heard.failure:
        return f"correct the host's name in {line}"
    if "no answer within" in heard.failure:
        return "the engine hangs, or a firewall drops its packets: look at its log, then at the way to it"
    if "no HTTP answer" in heard.failure:
        return f"something else listens there, or it speaks TLS only: check the port and https:// in {line}"
    return f"check the network between here and the address in {line}"


def _trust(site: Site, failure: str) -> str:
    line = site.at(*site.url_path)
    if "expired" in failure:
        return "renew the engine's certificate"
    if "match" in failure:
        return f"{line}: use a name that the certificate has, or get one for this name"
    return "name the authority that signed it: SSL_CERT_FILE=/path/to/ca.pem where turnout serve and doctor run"
