"""What keys have used of models, day by day: `/admin/usage`, as JSON or CSV."""

import csv
import io
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from starlette.responses import JSONResponse, Response

from gateway.api.ops import snapshot
from gateway.api.view import View
from gateway.errors import InvalidRequest, UsageUnavailable
from gateway.metrics import TotalUnavailable
from gateway.usage import UsageBook, UsageRow
from gateway.usage_text import day_of, harmless

FIRST: Final = "0001-01-01"
LAST: Final = "9999-12-31"
Day = Annotated[str, AfterValidator(day_of), WithJsonSchema({"type": "string", "format": "date"})]


class Usage(BaseModel):
    """The use of one model by one key on one day."""

    day: str = Field(description="UTC")
    key: str = Field(description="the key's name; empty where no keys are asked for")
    tags: list[str]
    model: str
    requests: int
    prompt_tokens: int
    answer_tokens: int
    estimated: int = Field(description="how many of the requests are counted by estimate")


async def usage_of(view: View, since: str, until: str) -> list[Usage]:
    """The rows of these days, both included: Redis' where it is used, else those of all processes here.

    Raises:
        UsageUnavailable: Redis, or the other processes, do not answer.
    """
    rows = await view.shared_usage(since, until)
    if rows is None:
        try:
            book = view.meters.usage if view.meters.ask_all is None else await _of_all(view)
        except TotalUnavailable:
            raise UsageUnavailable("The counts of the other processes cannot be had now.", retry_after=1.0) from None
        rows = book.sorted(since, until)
    tags = {key.name: list(key.tags) for key in view.plane.settings.keys}
    return [_shown(row, tags.get(row.key, [])) for row in rows]


async def _of_all(view: View) -> UsageBook:
    assert view.meters.ask_all is not None  # noqa: S101 - the caller has looked
    return UsageBook((await view.meters.ask_all(snapshot(view, thorough=False))).usage)


def _shown(row: UsageRow, tags: list[str]) -> Usage:
    return Usage(
        day=row.day,
        key=row.key,
        tags=tags,
        model=row.model,
        requests=row.requests,
        prompt_tokens=row.prompt_tokens,
        answer_tokens=row.answer_tokens,
        estimated=row.estimated,
    )


def as_csv(rows: list[Usage]) -> str:
    """The rows with a line of headings; tags are separated by blanks. No cell can be taken for a formula."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Usage.model_fields)
    for row in rows:
        table.writerow(harmless(" ".join(cell) if isinstance(cell, list) else cell) for _, cell in row)
    return text.getvalue()


def router(view: View) -> APIRouter:
    """The route."""
    routes = APIRouter()

    async def get_usage(
        since: Annotated[Day, Query(description="the first day, UTC")] = FIRST,
        until: Annotated[Day, Query(description="the last day, UTC")] = LAST,
        form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
    ) -> Response:
        """Gives what each key has used of each model, day by day."""
        if until < since:
            raise InvalidRequest("'until' is before 'since'.", param="until")
        rows = await usage_of(view, since, until)
        if form == "csv":
            return Response(as_csv(rows), media_type="text/csv; charset=utf-8")
        return JSONResponse([row.model_dump() for row in rows])

    routes.add_api_route("/usage", get_usage, methods=["GET"], operation_id="get_usage", response_model=list[Usage])
    return routes
