"""What `turnout doctor` last found, for operators: read from where it keeps its results on this machine."""

import os
from pathlib import Path

from fastapi import APIRouter
from pydantic import BaseModel, Field

from gateway.api.view import View
from gateway.doctor import results
from gateway.doctor.finding import Level


class Found(BaseModel):
    """A promise of the file that an engine did not keep."""

    level: Level
    engine: str
    model: str = Field(description="empty where the whole engine is meant")
    check: str
    evidence: str
    fix: str


class Run(BaseModel):
    """The last look at one engine."""

    engine: str
    version: str
    at: str = Field(description="when, in UTC")
    findings: list[Found]


def router(view: View) -> APIRouter:
    """The route, for the admin API to include."""
    routes = APIRouter()

    def last_runs() -> list[Run]:  # not async: files are read, in a thread
        """Gives what `turnout doctor` last found for each engine of the file in force; empty if it was never run."""
        return runs(view)

    routes.add_api_route("/doctor", last_runs, methods=["GET"], operation_id="last_doctor_runs")
    return routes


def runs(view: View) -> list[Run]:
    """The last run over each engine that is in force."""
    if not view.config.source:
        return []
    kept = results.last(results.folder_for(results.default_folder(os.environ), Path(view.config.source)))
    return [
        Run(
            engine=one.engine,
            version=one.version,
            at=one.at,
            findings=[Found.model_validate(finding.plain()) for finding in one.findings],
        )
        for one in kept.values()
        if one.engine in view.plane.engines
    ]
