"""`turnout doctor` on a configuration, without its command line, and with less patience."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from engines.profile import EngineKind
from engines.simulator import Pace, SimulatedModel, build_app
from engines.simulator.pace import NO_FAULTS, Faults
from engines.simulator.server import listening
from gateway.doctor.asker import Patience
from gateway.doctor.examination import Examination
from gateway.doctor.finding import Finding
from gateway.doctor.subject import Lines
from gateway.settings import load
from gateway.settings.document import read_document

PATIENCE = Patience(answer=5.0, leaving=1.0, idle=0.2)


def examination(file: Path, text: str, patience: Patience = PATIENCE) -> Examination:
    """What is to be examined, ready to run."""
    file.write_text(text)
    lines = Lines(file.name, read_document(text, {}))
    return Examination(load(file, {}).settings, lines, patience)


class Doctor:
    """Examines configurations that a test writes."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "turnout.yaml"

    async def __call__(self, text: str, patience: Patience = PATIENCE) -> list[Finding]:
        """What is found."""
        return list((await examination(self._file, text, patience).run()).findings)

    async def one(self, text: str, check: str, patience: Patience = PATIENCE) -> Finding:
        """The only finding of a check."""
        found = await self(text, patience)
        (finding,) = [finding for finding in found if finding.check == check]
        return finding

    async def only(self, text: str, check: str, patience: Patience = PATIENCE) -> Finding:
        """The only finding there is."""
        (finding,) = await self(text, patience)
        assert finding.check == check
        return finding


@contextlib.asynccontextmanager
async def engine(
    kind: str,
    *models: SimulatedModel | str,
    faults: Faults = NO_FAULTS,
    keys: Sequence[str] = (),
    pace: Pace = Pace(),  # noqa: B008 - a frozen value
) -> AsyncIterator[str]:
    """A simulated engine; its URL."""
    async with listening(build_app(EngineKind(kind), models, pace, faults=faults, api_keys=keys)) as running:
        yield running.url
