"""Serving without a list of models: the engines are asked which ones they have."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import ValidationError

from engines.probes import Answer, parse_models
from engines.profile import Profile
from engines.registry import profile
from gateway.background.fetch import Fetch, NoAnswer
from gateway.background.listing import tasks_of
from gateway.balance.endpoint import Endpoint
from gateway.proxy.links import Addresses, endpoints_of
from gateway.proxy.plane import Plane
from gateway.settings.models import Model, Target, Task
from gateway.settings.tree import Settings

PATIENCE: Final = 5.0
"""Seconds that the start waits for the engines; those that are later are added when they answer."""

AGAIN: Final = 0.2
"""Seconds between two of these questions."""

SOON: Final = 2.0
"""Seconds between two looks while an engine has not listed anything yet."""

LATER: Final = 15.0
"""Seconds between two looks once all have."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an engine is asked, whether the plane in force has it or not."""

    engine: str
    profile: Profile
    endpoints: Sequence[Endpoint]
    credentials: Mapping[str, str]


class Discovery:
    """Keeps the models in force equal to what the engines list, where no models are configured.

    An engine that stops answering keeps the models it listed last: requests for them then say that it is down.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        plane: Callable[[], Plane],
        apply: Callable[[Settings], None],
        fetch: Fetch,
    ) -> None:
        """``settings`` are those that are configured, ``plane`` is what is in force."""
        self._settings = settings
        self._plane = plane
        self._apply = apply
        self._fetch = fetch
        self._listed: dict[str, dict[str, Task]] = {}

    async def ahead(self, settings: Settings, addresses: Addresses) -> Settings:
        """Settings, perhaps not in force yet, with the models that their engines list.

        Those that are configured stay as they are. All engines are asked, those again that are there and say nothing,
        for `PATIENCE` seconds at most; ``addresses`` is what names stand for.
        """
        if not settings.discovers_models:
            return settings
        places = [
            _Place(name, profile(one.kind), list(endpoints_of(one, addresses)), one.credentials)
            for name, one in settings.engines.items()
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while places:
                    places = await self._ask_all(places)
                    await asyncio.sleep(AGAIN if places else 0)
        return self._with_models(settings)

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            waiting = len(self._listed) < len(self._settings().engines)
            await asyncio.sleep(SOON if waiting else LATER)
            if self._settings().discovers_models:
                await self.look()

    async def look(self) -> None:
        """Asks all engines once and applies what is new."""
        await self._ask_all(
            _Place(name, link.profile, list(link.engine.endpoints), link.settings.credentials)
            for name, link in self._plane().engines.items()
        )
        settings = self._settings()
        if not settings.discovers_models:
            return  # by a change of the configuration meanwhile
        settings = self._with_models(settings)
        if settings.models != self._plane().settings.models:
            self._apply(settings)
            _log.info("models discovered", models=", ".join(settings.models))

    def _with_models(self, settings: Settings) -> Settings:
        models = models_from({name: self._listed[name] for name in settings.engines if name in self._listed})
        return settings.model_copy(update={"models": models})

    async def _ask_all(self, places: Iterable[_Place]) -> list[_Place]:
        """Asks at all places; gives those that said nothing, though somebody may be there."""
        asked: list[tuple[_Place, asyncio.Task[bool]]] = []
        async with asyncio.TaskGroup() as group:
            asked += [(place, group.create_task(self._ask(place))) for place in places]
        return [place for place, silent in asked if silent.result()]

    async def _ask(self, place: _Place) -> bool:
        """Asks at one place. True: nobody said anything, and not because nobody listens."""
        found: dict[str, Task] = {}
        heard = silent = False
        for endpoint in place.endpoints:
            listing = await self._fetch.get(endpoint, place.profile.models_path, place.credentials)
            silent = silent or (isinstance(listing, NoAnswer) and not listing.refused)
            if isinstance(listing, Answer) and listing.status == 200:
                heard = True
                names = [model.id for model in parse_models(listing.body)]
                known = self._listed.get(place.engine, {})
                found |= await tasks_of(self._fetch, place.profile.kind, endpoint, names, place.credentials, known)
        if heard:
            self._listed[place.engine] = found
        return silent and not heard


def models_from(listed: Mapping[str, Mapping[str, Task]]) -> dict[str, Model]:
    """Models for what engines list: one that several engines have for the same task gets all of them as targets."""
    tasks: dict[str, Task] = {}
    engines: dict[str, list[str]] = {}
    for engine, models in listed.items():
        for model, task in models.items():
            if tasks.setdefault(model, task) == task:
                engines.setdefault(model, []).append(engine)
    found: dict[str, Model] = {}
    for model, names in engines.items():
        try:
            targets = tuple(Target(engine=engine, model=model) for engine in names)
        except ValidationError:
            _log.warning("a model's name cannot be used", engine=names[0], model=model)
        else:
            found[model] = Model(targets=targets, task=tasks[model])
    return found
