"""The status page: one plain HTML page without scripts and without anything from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Final

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from gateway.api.ops import readiness
from gateway.api.view import View

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "cache-control": "no-store",
}

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<title>Turnout</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; margin-bottom: 2rem; }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; vertical-align: top; }}
caption {{ text-align: left; font-weight: 600; padding: .5rem 0; }}
.up, .ready {{ color: #188038; }} .down, .not_ready {{ color: #d93025; }}
.ejected, .draining, .degraded {{ color: #b06000; }}
</style>
</head>
<body>
<h1>Turnout</h1>
<p>Status: <strong class="{status}">{status_text}</strong></p>
{reasons}
<table><caption>Engines</caption>
<thead><tr><th>Engine</th><th>Kind</th><th>Version</th><th>Replica</th><th>State</th><th>In flight</th></tr></thead>
<tbody>{engines}</tbody></table>
<table><caption>Models</caption>
<thead><tr><th>Name</th><th>Task</th><th>Engines</th></tr></thead>
<tbody>{models}</tbody></table>
<p><a href="/v1/models">models</a> · <a href="/readyz">readiness</a> · <a href="/metrics">metrics</a> ·
<a href="/openapi.json">OpenAPI</a></p>
</body>
</html>
"""


def page(view: View) -> str:
    """The page. It shows no address and no reason that might hold one."""
    found = readiness(view)
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in found.reasons)
    return _PAGE.format(
        status=found.status,
        status_text=found.status.replace("_", " "),
        reasons=f"<ul>{reasons}</ul>" if reasons else "",
        engines="".join(_engine_rows(view)),
        models="".join(_model_rows(view)),
    )


def _engine_rows(view: View) -> Iterator[str]:
    for name, link in view.plane.engines.items():
        for number, endpoint in enumerate(link.engine.endpoints, 1):
            state = endpoint.state.value
            yield (
                f"<tr><td>{escape(name)}</td><td>{escape(link.profile.title)}</td>"
                f"<td>{escape(link.engine.version or '')}</td><td>{number}</td>"
                f'<td class="{state}">{state}</td><td>{endpoint.in_flight}</td></tr>'
            )


def _model_rows(view: View) -> Iterator[str]:
    for asked in view.plane.asked.values():
        alias = "" if asked.name == asked.route.model else f" (alias of {escape(asked.route.model)})"
        engines = ", ".join(escape(target.engine.name) for target in asked.route.targets)
        yield f"<tr><td>{escape(asked.name)}{alias}</td><td>{escape(asked.task)}</td><td>{engines}</td></tr>"


def router(view: View) -> APIRouter:
    """The route."""
    routes = APIRouter(include_in_schema=False)

    async def status_page() -> HTMLResponse:
        return HTMLResponse(page(view), headers=HEADERS)

    routes.add_api_route("/", status_page, methods=["GET", "HEAD"], response_class=HTMLResponse)
    return routes
