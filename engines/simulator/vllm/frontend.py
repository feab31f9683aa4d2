"""vLLM's API server: routes, keys, model names."""

import uuid
from collections.abc import Callable, Sequence

from engines.simulator.load import Load
from engines.simulator.models import SimulatedModel, Task
from engines.simulator.schema import Body, Refused, Unreadable, read_object
from engines.simulator.vllm import anthropic, chat, completions, embeddings, metrics, ops, responses, scoring
from engines.simulator.vllm.errors import (
    BUSY,
    CRASHED,
    PREFLIGHT,
    UNAUTHORIZED,
    UNREADABLE,
    BadRequest,
    WrongContentType,
    error,
    invalid,
)
from engines.simulator.vllm.render import Find
from engines.simulator.wire import NOT_FOUND, Leaving, Reply, Request, Work, reply, wrong_method

VERSION = "0.32.0"
_GUARDED = ("/v1", "/v2")
_PLANS: dict[str, tuple[Task, Callable[[Body, Find, str], Work]]] = {
    "/v1/chat/completions": (Task.CHAT, chat.plan),
    "/invocations": (Task.CHAT, chat.plan),
    "/v1/completions": (Task.CHAT, completions.plan),
    "/v1/embeddings": (Task.EMBEDDING, embeddings.plan),
    "/v1/responses": (Task.CHAT, responses.plan),
    "/v1/messages": (Task.CHAT, anthropic.plan),
    "/v1/rerank": (Task.EMBEDDING, scoring.rerank),
    "/v2/rerank": (Task.EMBEDDING, scoring.rerank),
    "/rerank": (Task.EMBEDDING, scoring.rerank),
    "/v1/score": (Task.EMBEDDING, scoring.score),
    "/score": (Task.EMBEDDING, scoring.score),
}
_COUNT_TOKENS = "/v1/messages/count_tokens"
_KEPT = "/v1/responses/"
_KINDS = {400: "BadRequestError", 404: "NotFoundError", 429: "Too Many Requests", 503: "Service Unavailable"}


class VllmFrontend:
    """One simulated `vllm serve`.

    A real server has one model. This one may have several, also of both tasks; a path exists when a model of its
    task does, and a name of the other task is an unknown model there.
    """

    leaving = Leaving.ABORT
    headers: tuple[tuple[bytes, bytes], ...] = ((b"vary", b"Origin"),)

    def __init__(self, models: Sequence[SimulatedModel], load: Load, api_keys: Sequence[str]) -> None:
        self._models, self._load = models, load
        self._keys = frozenset(api_keys)
        self._names = {task: _names(models, task) for task in Task}

    def respond(self, request: Request, *, unhealthy: bool) -> Reply | Work:
        """The answer to one request."""
        if self._keys and request.path.startswith(_GUARDED) and not self._authorized(request):
            return UNAUTHORIZED
        if request.method == "OPTIONS" and request.header(b"access-control-request-method"):
            return PREFLIGHT
        planned = _PLANS.get(request.path)
        if planned is not None:
            task, plan = planned
            if not self._names[task]:
                return NOT_FOUND
            return wrong_method("POST") if request.method != "POST" else self._plan(request, task, plan)
        if request.path.endswith("/") and request.path[:-1] in _PLANS:
            location = f"http://{request.header(b'host')}{request.path[:-1]}"
            return Reply(307, headers=((b"location", location.encode()),))
        return self._plain(request, unhealthy=unhealthy)

    def refusal(self) -> Reply | None:
        """Recording `queue_full`."""
        return BUSY

    def fault(self, status: int) -> Reply:
        """An error of vLLM's."""
        if status == 401:
            return UNAUTHORIZED
        if status == 500:
            return CRASHED
        return error(status, "The simulated engine fails as it was told to.", _KINDS.get(status, "InternalServerError"))

    def _authorized(self, request: Request) -> bool:
        scheme, _, key = request.header(b"authorization").partition(" ")
        return scheme.lower() == "bearer" and key in self._keys

    def _plan(self, request: Request, task: Task, plan: Callable[[Body, Find, str], Work]) -> Reply | Work:
        try:
            body = _body(request)
            return plan(body, lambda name: self._find(name, task), _request_id(request, body))
        except BadRequest as refused:
            return refused.reply
        except Unreadable:
            return UNREADABLE

    def _find(self, name: object, task: Task) -> tuple[SimulatedModel, str]:
        names = self._names[task]
        if not name:
            first = next(iter(names.values()))
            return first, first.name
        found = names.get(str(name))
        if found is None:
            raise self._unknown(str(name), task)
        return found, str(name) if str(name) in found.adapters else found.name

    def _unknown(self, name: str, task: Task) -> BadRequest:
        message = f"The model `{name}` does not exist."
        if task is Task.EMBEDDING:
            return BadRequest(message, status=404, kind="NotFoundError")
        aliases = ", ".join(each for each, model in self._names[task].items() if each not in model.adapters)
        return BadRequest(f"{message} Valid aliases: {aliases}.", "model", 404, "NotFoundError")

    def _plain(self, request: Request, *, unhealthy: bool) -> Reply | Work:
        match request.path:
            case "/health" | "/ping":
                if request.method not in (("GET",) if request.path == "/health" else ("GET", "POST")):
                    return wrong_method("GET")
                return Reply(503 if unhealthy else 200)
            case "/v1/models":
                return ops.models(self._models) if request.method == "GET" else wrong_method("GET")
            case "/metrics":
                return metrics.metrics(self._load) if request.method == "GET" else wrong_method("GET")
            case "/version":
                return reply(200, {"version": VERSION})
            case "/load":
                return reply(200, {"server_load": 0})
            case "/tokenize" | "/detokenize" | "/v1/messages/count_tokens" if request.method == "POST":
                return self._count(request)
            case path if path.startswith(_KEPT) and request.method == "GET" and self._names[Task.CHAT]:
                return responses.unknown_response(path.removeprefix(_KEPT)).reply
            case _:
                return NOT_FOUND

    def _count(self, request: Request) -> Reply:
        """What needs the tokenizer and not the engine."""
        try:
            body = _body(request)
            if request.path == _COUNT_TOKENS:
                found = Task.CHAT
                return (
                    anthropic.count_tokens(body, lambda name: self._find(name, found))
                    if self._names[found]
                    else NOT_FOUND
                )
            name = str(body.get("model") or "")
            of_task = [task for task in Task if name in self._names[task]] or [self._models[0].task]
            model, _ = self._find(name, of_task[0])
            return ops.tokenize(body, model) if request.path == "/tokenize" else ops.detokenize(body)
        except BadRequest as refused:
            return refused.reply
        except Unreadable:
            return UNREADABLE


def _names(models: Sequence[SimulatedModel], task: Task) -> dict[str, SimulatedModel]:
    of_task = [model for model in models if model.task is task]
    return {name: model for model in of_task for name in (model.name, *model.aliases, *model.adapters)}


def _body(request: Request) -> Body:
    if request.header(b"content-type").partition(";")[0].strip().lower() != "application/json":
        raise WrongContentType
    try:
        return read_object(request.body)
    except Refused as refused:
        raise invalid([refused.issue]) from refused


def _request_id(request: Request, body: Body) -> str:
    """The body's `request_id`, else the header, unchecked and of any length (`wire_odd_request_id`)."""
    return str(body.get("request_id") or request.header(b"x-request-id") or uuid.uuid4().hex[:16])
