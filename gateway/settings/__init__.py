"""The configuration: one immutable tree, read from one YAML file and the environment."""

from gateway.settings.loading import Loaded, load
from gateway.settings.problems import ConfigErrors, Problem
from gateway.settings.tree import Engine, Health, Model, Retry, Server, Settings, Target, Timeouts

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
