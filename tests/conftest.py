"""What every test may use."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code: timings belong in benchmarks.
settings.register_profile("turnout", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turnout")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT
