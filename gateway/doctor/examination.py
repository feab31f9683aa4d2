"""Asks all engines of a configuration, in parallel, and gathers what the checks find."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engines.probes import Fingerprint
from engines.profile import Build, Profile
from engines.registry import profile
from gateway.doctor.asker import Asker, Patience
from gateway.doctor.asking import Answers, How, Question
from gateway.doctor.checks import connection, identity, inference, listing, reaching, schema, streaming, thoughts, tools
from gateway.doctor.checks.check import ModelCheck, SiteCheck
from gateway.doctor.finding import Diagnosis, Finding, Level
from gateway.doctor.subject import Lines, Site, Subject
from gateway.settings.tree import Settings
from gateway.settings.values import MANY_ADDRESSES

HEALTH: Final[Sequence[SiteCheck]] = (reaching.Reachable(), reaching.Tls())
IDENTITY: Final[Sequence[SiteCheck]] = (identity.Kind(), identity.Key())
MANNERS: Final[Sequence[SiteCheck]] = (identity.OpenPaths(), connection.Clock(), connection.KeepAlive())
SERVING: Final[Sequence[ModelCheck]] = (listing.Listed(), inference.Inference())
"""Asked of every replica."""
CONTRACT: Final[Sequence[ModelCheck]] = (
    listing.Context(),
    inference.Embeddings(),
    streaming.Stream(),
    streaming.StopReason(),
    streaming.DefaultTokens(),
    *tools.CHECKS,
    thoughts.Reasoning(),
    schema.Schema(),
)
"""Asked of one replica of an engine."""
LAST: Final[Sequence[ModelCheck]] = (streaming.Leaving(),)
"""Asked when nothing else is."""

Progress = Callable[[str, int, int], None]
"""Told after each step: the engine, its steps that are done, all of its steps."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Most that an examination asks of the engines: requests, and tokens that they generate."""

    requests: int = 0
    tokens: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        """Both."""
        return Cost(self.requests + other.requests, self.tokens + other.tokens)


@dataclass(slots=True)
class Examination:
    """One look at everything. ``addresses``: what the names of ``dns+`` URLs stand for."""

    settings: Settings
    lines: Lines
    patience: Patience = field(default_factory=Patience)
    addresses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    progress: Progress | None = None

    def sites(self, engine: str) -> list[Site]:
        """The replicas of an engine."""
        given = self.settings.engines[engine]
        places = [(url.removeprefix(MANY_ADDRESSES), at) for url in given.urls for at in self.addresses.get(url, ("",))]
        kind = profile(given.kind).for_build(Build(guided=given.guided_decoding))
        return [
            Site(engine, url, given, kind, self.lines, first=number == 0, address=address)
            for number, (url, address) in enumerate(places)
        ]

    def subjects(self, site: Site) -> list[Subject]:
        """The models on it that the file names."""
        return [
            Subject(site, name, target.model or name, model)
            for name, model in self.settings.models.items()
            for target in model.targets_of(name)
            if target.engine == site.engine
        ]

    def cost(self, engine: str) -> Cost:
        """Most that one engine is asked."""
        return sum(map(self._cost, self.sites(engine)), Cost())

    def _cost(self, site: Site) -> Cost:
        questions = {question for check in (*HEALTH, *IDENTITY, *MANNERS) for question in check.asks(site)}
        for subject in self.subjects(site):
            checks = (*SERVING, *CONTRACT, *LAST) if site.first else SERVING
            questions.update(question for check in checks for question in check.asks(subject))
        looks = sum(self.patience.looks for question in questions if question.how is How.LEAVE)
        return Cost(len(questions) + looks, sum(question.tokens for question in questions))

    async def run(self) -> Diagnosis:
        """Asks, within the cost that was stated."""
        asker = Asker(self.patience)
        try:
            found = await asyncio.gather(*(self._engine(asker, name) for name in self.settings.engines))
        finally:
            await asker.close()
        findings = [finding for one in found for finding in one.findings]
        versions = {name: version for one in found for name, version in one.versions.items()}
        return Diagnosis(tuple(without_keys(self.settings, findings)), versions)

    async def _engine(self, asker: Asker, name: str) -> Diagnosis:
        sites = self.sites(name)
        steps = sum(1 + len(self.subjects(site)) for site in sites)
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            if self.progress is not None:
                self.progress(name, done, steps)

        looked = await asyncio.gather(*(self._site(asker, site, step) for site in sites))
        findings = [finding for one in looked for finding in one.findings]
        versions = {one.version for one in looked if one.version}
        if len(versions) > 1:
            evidence = f"its replicas run different versions: {', '.join(sorted(versions))}"
            fix = "bring them to one version, or make two engines of them"
            findings.append(Finding(Level.WARNING, name, "", "version", evidence, fix))
        return Diagnosis(tuple(findings), {name: ", ".join(sorted(versions))})

    async def _site(self, asker: Asker, site: Site, step: Callable[[], None]) -> "_Looked":
        answers = await asker.ask(site, reaching.health(site))
        unwell = list(judged(HEALTH, site, answers))
        if answers[reaching.health(site)].failure:
            return _Looked(unwell, "")
        answers = await asker.ask(site, *asked(IDENTITY, site))
        who = identity.who(site, answers)
        strange = list(judged(IDENTITY, site, answers))
        version = who.version or ""
        if any(finding.level is Level.ERROR for finding in strange):
            # Another kind has its health checks elsewhere: what was found there says nothing.
            return _Looked([*(finding for finding in unwell if finding.check != "reachable"), *strange], version)
        step()
        built = replace(site, profile=_built(site, who))
        well = not any(finding.level is Level.ERROR for finding in unwell)
        about, answers = await asyncio.gather(
            _models(asker, self.subjects(built) if well else (), step), asker.ask(site, *asked(MANNERS, site))
        )
        return _Looked([*unwell, *strange, *judged(MANNERS, site, answers), *about], version)


def _built(site: Site, who: Fingerprint) -> Profile:
    """The profile as the build that answers has it."""
    build = Build(who.version, who.rust_frontend, site.settings.guided_decoding)
    return profile(site.settings.kind).for_build(build)


@dataclass(slots=True)
class _Looked:
    findings: list[Finding]
    version: str


async def _models(asker: Asker, subjects: Iterable[Subject], step: Callable[[], None]) -> list[Finding]:
    """One after another: what a model does to the engine's metrics must not be another's doing."""
    findings: list[Finding] = []
    for subject in subjects:
        findings += await _model(asker, subject)
        step()
    return findings


async def _model(asker: Asker, subject: Subject) -> list[Finding]:
    """Everything about one model; a closer look only where it answers at all."""
    site = subject.site
    answers = await asker.ask(site, *wanted(SERVING, subject))
    findings = list(concluded(SERVING, subject, answers))
    if not site.first or any(finding.level is Level.ERROR for finding in findings):
        return findings
    answers = await asker.ask(site, *wanted(CONTRACT, subject))
    findings += concluded(CONTRACT, subject, answers)
    answers = await asker.ask(site, *wanted(LAST, subject))
    return [*findings, *concluded(LAST, subject, answers)]


def asked(checks: Iterable[SiteCheck], site: Site) -> list[Question]:
    """All questions of these checks."""
    return [question for check in checks for question in check.asks(site)]


def judged(checks: Iterable[SiteCheck], site: Site, answers: Answers) -> Iterator[Finding]:
    """What these checks find."""
    for check in checks:
        yield from check.judge(site, answers)


def wanted(checks: Iterable[ModelCheck], subject: Subject) -> list[Question]:
    """All questions of these checks."""
    return [question for check in checks for question in check.asks(subject)]


def concluded(checks: Iterable[ModelCheck], subject: Subject, answers: Answers) -> Iterator[Finding]:
    """What these checks find."""
    for check in checks:
        yield from check.judge(subject, answers)


def without_keys(settings: Settings, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings with stars for whatever an engine has told of the keys that it was sent."""
    keys = [engine.api_key.get_secret_value() for engine in settings.engines.values() if engine.api_key is not None]
    for finding in findings:
        evidence = finding.evidence
        for key in filter(None, keys):
            evidence = evidence.replace(key, "***")
        yield Finding(finding.level, finding.engine, finding.model, finding.check, evidence, finding.fix)
