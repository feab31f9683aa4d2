"""trtllm-serve's server: routes, and a model name that nobody checks."""

import itertools
from collections.abc import Callable, Mapping, Sequence

from engines.simulator.load import Load
from engines.simulator.models import SimulatedModel, Task
from engines.simulator.schema import Body, Refused, Unreadable, read_object
from engines.simulator.trtllm import chat, completions, ops
from engines.simulator.trtllm.errors import BadRequest, flat, invalid
from engines.simulator.wire import NOT_FOUND, Leaving, Reply, Request, Work, reply, wrong_method

VERSION = "1.3.0"
_TEXT = b"text/plain; charset=utf-8"
_INTERNAL = Reply(500, b"Internal Server Error", _TEXT)
_DEAD = Reply(503, b"LLM is unavailable. Please check the server logs for more details.", _TEXT)
_PLANS: Mapping[str, Callable[[Body, SimulatedModel, int], Work]] = {
    "/v1/chat/completions": chat.plan,
    "/v1/completions": completions.plan,
}


class TrtllmFrontend:
    """One simulated `trtllm-serve`. A real one has a single model; an unknown name is answered by the first."""

    leaving = Leaving.ABORT_ON_POLL
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, models: Sequence[SimulatedModel], load: Load, api_keys: Sequence[str]) -> None:
        # There is no key option: bearer headers are ignored.
        del api_keys
        self._models = [model for model in models if model.task is Task.CHAT]
        if not self._models:
            raise ValueError("trtllm-serve needs a chat model; embeddings run on a server of their own")
        self._load = load
        self._numbers = itertools.count(2)
        self._iterations = 0
        self._seen = (0, 0, 0)

    def respond(self, request: Request, *, unhealthy: bool) -> Reply | Work:
        """The answer to one request."""
        plan = _PLANS.get(request.path)
        if plan is not None:
            return wrong_method("POST") if request.method != "POST" else self._plan(request, plan)
        if request.method == "POST" and request.path == "/kv_cache_events":
            return reply(200, [])
        if request.method != "GET":
            return NOT_FOUND
        return self._plain(request.path, unhealthy=unhealthy)

    def refusal(self) -> Reply | None:
        """No refusal of a full chat queue is known."""
        return None

    def fault(self, status: int) -> Reply:
        """An error of trtllm-serve's."""
        kind = "BadRequestError" if status < 500 else "InternalServerError"
        return flat("The simulated engine fails as it was told to.", status, status, kind)

    def _plan(self, request: Request, plan: Callable[[Body, SimulatedModel, int], Work]) -> Reply | Work:
        if request.body and request.header(b"content-type").partition(";")[0].strip() != "application/json":
            return _INTERNAL
        try:
            body = read_object(request.body)
            name = body.get("model")
            model = next((each for each in self._models if each.name == name), self._models[0])
            return plan(body, model, next(self._numbers))
        except BadRequest as refused:
            return refused.reply
        except Refused as refused:
            return invalid([refused.issue]).reply
        except Unreadable:
            return reply(400, {"detail": "There was an error parsing the body"})

    def _plain(self, path: str, *, unhealthy: bool) -> Reply | Work:
        match path:
            case "/health":
                return _DEAD if unhealthy else Reply()
            case "/health_generate":
                text = b"Generation health check failed" if unhealthy else b"Generation health check OK"
                return Reply(500 if unhealthy else 200, text, _TEXT)
            case "/version":
                return reply(200, {"version": VERSION})
            case "/v1/models":
                return ops.models(self._models)
            case "/metrics":
                return reply(200, self._drain())
            case "/prometheus/metrics":
                return ops.prometheus(self._load)
            case "/energy_metrics":
                return reply(503, {"error": "Energy monitoring is not available"})
            case "/server_info":
                return reply(200, {"disaggregated_params": {}})
            case _:
                return NOT_FOUND

    def _drain(self) -> list[dict[str, object]]:
        """Each statistic is given once: a second reader finds none unless something happened in between."""
        now = (self._load.running, self._load.waiting, self._load.accepted)
        if now == self._seen:
            return []
        self._seen = now
        self._iterations += 1
        return [ops.iteration(self._load, self._iterations)]
