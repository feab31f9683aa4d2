"""Serving without a list of models: the engines are asked which ones they have."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog
from pydantic import ValidationError

from engines.probes import Answer, parse_models
from gateway.background.fetch import Fetch
from gateway.background.listing import tasks_of
from gateway.proxy.links import EngineLink
from gateway.proxy.plane import Plane
from gateway.settings.models import Model, Target, Task
from gateway.settings.tree import Settings

PATIENCE: Final = 5.0
"""Seconds that the start waits for the engines; those that are later are added when they answer."""

SOON: Final = 2.0
"""Seconds between two looks while an engine has not listed anything yet."""

LATER: Final = 15.0
"""Seconds between two looks once all have."""

_log = structlog.get_logger()


class Discovery:
    """Keeps the models in force equal to what the engines list.

    An engine that stops answering keeps the models it listed last: requests for them then say that it is down.
    """

    def __init__(
        self, settings: Settings, plane: Callable[[], Plane], apply: Callable[[Settings], None], fetch: Fetch
    ) -> None:
        self._settings = settings
        self._plane = plane
        self._apply = apply
        self._fetch = fetch
        self._listed: dict[str, dict[str, Task]] = {}
        self._in_force: Mapping[str, Model] = {}

    async def first_look(self) -> None:
        """Asks all engines once, for `PATIENCE` seconds at most."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self.look()
        except TimeoutError:
            self._put_in_force()

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            waiting = len(self._listed) < len(self._settings.engines)
            await asyncio.sleep(SOON if waiting else LATER)
            await self.look()

    async def look(self) -> None:
        """Asks all engines once and applies what is new."""
        async with asyncio.TaskGroup() as group:
            for name, link in self._plane().engines.items():
                group.create_task(self._ask(name, link))
        self._put_in_force()

    def _put_in_force(self) -> None:
        models = models_from({name: self._listed[name] for name in self._settings.engines if name in self._listed})
        if models == self._in_force:
            return
        self._in_force = models
        self._apply(self._settings.model_copy(update={"models": models}))
        _log.info("models discovered", models=", ".join(models))

    async def _ask(self, name: str, link: EngineLink) -> None:
        credentials = self._plane().settings.engines[name].credentials
        found: dict[str, Task] = {}
        heard = False
        for endpoint in link.engine.endpoints:
            listing = await self._fetch.get(endpoint, link.profile.models_path, credentials)
            if isinstance(listing, Answer) and listing.status == 200:
                heard = True
                names = [model.id for model in parse_models(listing.body)]
                known = self._listed.get(name, {})
                found |= await tasks_of(self._fetch, link.profile.kind, endpoint, names, credentials, known)
        if heard:
            self._listed[name] = found


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
