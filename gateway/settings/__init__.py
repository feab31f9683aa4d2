"""The configuration: one immutable tree, read from one YAML file and the environment."""

from gateway.settings.engines import Engine, Health, Timeouts
from gateway.settings.loading import Loaded, load
from gateway.settings.models import Model, Target
from gateway.settings.problems import ConfigErrors, Problem
from gateway.settings.server import Server
from gateway.settings.tree import Retry, Settings

__all__ = [
    "ConfigErrors",
    "Engine",
    "Health",
    "Loaded",
    "Model",
    "Problem",
    "Retry",
    "Server",
    "Settings",
    "Target",
    "Timeouts",
    "load",
]
