"""Who answers at an address: the kind of engine, its version, and whether it takes our key."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engines.probes import NO_ANSWER, Answer, Fingerprint, fingerprint
from engines.profile import EngineKind
from engines.registry import PROFILES
from gateway.doctor.asking import Answers, Heard, Question
from gateway.doctor.checks.check import of_site
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Site

VERSION = Question("/version")
READY = Question("/health/ready")
UNGUARDED = ("/invocations", "/tokenize", "/detokenize")
"""What vLLM leaves open with --api-key (recordings `auth_invocations_missing`, `auth_tokenize_missing`)."""


def listing(site: Site, *, with_key: bool = True) -> Question:
    """Which models are there?"""
    return Question(site.profile.models_path, with_key=with_key)


def who(site: Site, answers: Answers) -> Fingerprint:
    """Which software answers."""
    return fingerprint(*(_answer(answers[question]) for question in (VERSION, listing(site), READY)))


def _answer(heard: Heard) -> Answer:
    return NO_ANSWER if heard.failure else Answer(heard.status, heard.body)


def wanted_header(refusal: Heard) -> str:
    """The header that Triton names when it refuses (recording `auth_missing_key`); empty for other refusals."""
    found = _HEADER.search(refusal.body.decode("utf-8", "replace"))
    return found[1].lower() if found is not None else ""


_HEADER: Final = re.compile(r"expecting header '([A-Za-z0-9-]{1,64})'")


class Kind:
    """It is what the file says."""

    name = "kind"

    def asks(self, site: Site) -> Sequence[Question]:
        """What tells the kinds apart."""
        return (VERSION, listing(site), READY)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """Another kind; or nothing that belongs to any."""
        found = who(site, answers)
        said = site.settings.kind
        if found.kind is said:
            return
        if found.kind is not None:
            title = PROFILES[found.kind].title
            fix = f"{site.at('kind')}: {found.kind.value}"
            evidence = f"is {title}, not {site.profile.title}: {found.evidence}"
            yield of_site(Level.ERROR, site, self.name, evidence, fix)
        elif not found.needs_key and not answers[listing(site)].failure:
            fix = f"check the address in {site.at(*site.url_path)}; if it is right, a proxy in between may hide it"
            evidence = f"does not look like {site.profile.title}: {found.evidence}"
            yield of_site(Level.WARNING, site, self.name, evidence, fix)


class Key:
    """It takes our key, and asks for one if we have one."""

    name = "key"

    def asks(self, site: Site) -> Sequence[Question]:
        """The list of models, with the key and without."""
        return (listing(site), listing(site, with_key=False)) if site.keyed else (listing(site),)

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """Refused; or not needed."""
        heard = answers[listing(site)]
        if heard.status in (401, 403):
            yield self._refused(site, heard)
        elif site.keyed and heard.ok and answers[listing(site, with_key=False)].ok:
            yield self._not_asked(site)

    def _refused(self, site: Site, heard: Heard) -> Finding:
        line = site.at("api_key")
        header = wanted_header(heard)
        if header and header != site.settings.api_key_header:
            evidence = f"asks for a key in the header '{header}', as its --openai-restricted-api says"
            fix = f"{site.at('api_key_header')}: {header}, and {line}: ${{ENGINE_KEY}} with the value that it expects"
        elif header:
            evidence = f"refuses the key in the header '{header}'"
            fix = f"{line}: the value that its --openai-restricted-api has for this header"
        elif site.keyed:
            evidence = f"refuses the key (status {heard.status})"
            fix = f"{line}: the key that the engine was started with (--api-key or VLLM_API_KEY)"
        else:
            evidence = f"asks for a key (status {heard.status}), and the file has none"
            fix = f"{line}: ${{ENGINE_KEY}}, with the engine's --api-key in that variable"
        return of_site(Level.ERROR, site, self.name, evidence, fix)

    def _not_asked(self, site: Site) -> Finding:
        fix = f"guard its port by the network, and leave out {site.at('api_key')}"
        if site.settings.kind is EngineKind.VLLM:
            fix = f"start it with --api-key, or leave out {site.at('api_key')}"
        return of_site(Level.WARNING, site, self.name, "answers without the key too: anybody may use it", fix)


class OpenPaths:
    """What stays open in spite of a key."""

    name = "open_paths"

    def asks(self, site: Site) -> Sequence[Question]:
        """Empty requests without the key, which no engine does any work for."""
        if not site.keyed or site.settings.kind is not EngineKind.VLLM:
            return ()
        return (listing(site, with_key=False), *(Question(path, b"{}", with_key=False) for path in UNGUARDED))

    def judge(self, site: Site, answers: Answers) -> Iterable[Finding]:
        """Paths that look at what they were sent."""
        asked = self.asks(site)
        if not asked or answers[asked[0]].status != 401:
            return
        open_to_all = [one.path for one in asked[1:] if answers[one].status not in (0, 401, 403, 404, 405)]
        if open_to_all:
            evidence = f"guards /v1 only: {', '.join(open_to_all)} answer without the key"
            fix = "let nobody but the gateway reach the engine's port (--host, a firewall, a network policy)"
            yield of_site(Level.WARNING, site, self.name, evidence, fix)
