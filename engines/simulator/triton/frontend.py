"""Triton's OpenAI frontend: routes, restricted APIs, model and LoRA names."""

import time
from collections.abc import Callable, Mapping, Sequence

from engines.simulator.load import Load
from engines.simulator.models import SimulatedModel
from engines.simulator.schema import Body, Issue, Refused, Unreadable, read_object
from engines.simulator.triton import chat, completions, embeddings, ops
from engines.simulator.triton.errors import BadRequest, Invalid, detail, middleware
from engines.simulator.triton.rules import checked_chat, checked_completion, checked_embedding
from engines.simulator.wire import NOT_FOUND, Leaving, Reply, Request, Work, reply, wrong_method

MAX_INPUT = 64 * 1024 * 1024
"""Bytes of a request body."""
_SEPARATOR = "_lora_"
_APIS: Mapping[str, tuple[str, ...]] = {
    "inference": ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"),
    "model-repository": ("/v1/models",),
    "metrics": ("/metrics",),
    "health": ("/health/ready",),
}
_PLANS: Mapping[str, tuple[Callable[[Body], Body], Callable[[Body, SimulatedModel, str], Work]]] = {
    "/v1/chat/completions": (checked_chat, chat.plan),
    "/v1/completions": (checked_completion, completions.plan),
    "/v1/embeddings": (checked_embedding, embeddings.plan),
}
_TEXT = b"text/plain; charset=utf-8"


class TritonFrontend:
    """One simulated OpenAI frontend.

    `api_keys` are restricted APIs written as `API:HEADER:VALUE`, for example `inference:infer-key:s3cret`; without
    them everything is open, and bearer headers are never looked at.
    """

    leaving = Leaving.RUN_ON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, models: Sequence[SimulatedModel], load: Load, api_keys: Sequence[str]) -> None:
        self._models = {model.name: model for model in models}
        self._load = load
        self._restricted = [_restriction(key) for key in api_keys]
        self._loaded = int(time.time())
        self._separated = any(model.adapters for model in models)

    def respond(self, request: Request, *, unhealthy: bool) -> Reply | Work:
        """The answer to one request."""
        for prefixes, header, value in self._restricted:
            if request.path.startswith(prefixes) and request.header(header.lower().encode()) != value:
                message = f"This API is restricted, expecting header '{header}' with valid value"
                return middleware(401, message, "authentication_error", "invalid_auth")
        if len(request.body) > MAX_INPUT:
            message = f"Request size of {len(request.body)} bytes exceeds the maximum allowed input size of {MAX_INPUT}"
            hint = "bytes. Use --http-max-input-size to increase the limit."
            return middleware(413, f"{message} {hint}", "invalid_request_error", "content_too_large")
        if request.method == "OPTIONS" and request.header(b"access-control-request-method"):
            return _preflight(request.header(b"origin"))
        if request.path in _PLANS:
            return wrong_method("POST") if request.method != "POST" else self._plan(request)
        if request.path.startswith("/v1/models/"):
            return self._model(request)
        return self._plain(request, unhealthy=unhealthy)

    def refusal(self) -> Reply | None:
        """No refusal of a full queue is known."""
        return None

    def fault(self, status: int) -> Reply:
        """An error of Triton's."""
        return detail(status, "The simulated engine fails as it was told to.")

    def _plan(self, request: Request) -> Reply | Work:
        check, plan = _PLANS[request.path]
        try:
            body = check(_body(request))
            model, name = self._find(str(body["model"]))
            return plan(body, model, name)
        except (BadRequest, Invalid) as refused:
            return refused.reply
        except Refused as refused:
            return Invalid([refused.issue]).reply
        except Unreadable:
            return reply(400, {"detail": "There was an error parsing the body"})

    def _find(self, name: str) -> tuple[SimulatedModel, str]:
        if (found := self._models.get(name)) is not None:
            return found, name
        base, _, adapter = name.partition(_SEPARATOR)
        model = self._models.get(base) if self._separated and adapter else None
        if model is None:
            raise BadRequest(f"Unknown model: {name}")
        if adapter not in model.adapters:
            raise BadRequest(f"Unknown LoRA: {adapter}; for model: {name}")
        return model, name

    def _names(self) -> list[str]:
        names = list(self._models)
        return names + [f"{model.name}{_SEPARATOR}{each}" for model in self._models.values() for each in model.adapters]

    def _model(self, request: Request) -> Reply:
        name, _, verb = request.path.removeprefix("/v1/models/").partition("/")
        if verb in ("load", "unload") and request.method == "POST":
            return detail(400, "Model load/unload requires --model-control-mode=explicit")
        if verb or request.method != "GET":
            return NOT_FOUND
        if name not in self._names():
            return detail(404, f"Unknown model: {name}")
        return reply(200, ops.row(name, self._loaded))

    def _plain(self, request: Request, *, unhealthy: bool) -> Reply:
        if request.method != "GET":
            return NOT_FOUND
        match request.path:
            case "/health/ready":
                message = "Attached inference engine is not ready for inference requests."
                return detail(400, message) if unhealthy else Reply()
            case "/v1/models":
                return ops.models(self._names(), self._loaded)
            case "/metrics":
                custom = any(model.custom_metrics for model in self._models.values())
                return ops.metrics(self._load, custom=custom)
            case _:
                return NOT_FOUND


def _restriction(key: str) -> tuple[tuple[str, ...], str, str]:
    api, _, rest = key.partition(":")
    header, _, value = rest.partition(":")
    if api not in _APIS or not header or not value:
        raise ValueError(f"a restricted API of Triton is written API:HEADER:VALUE, with an API of {', '.join(_APIS)}")
    return _APIS[api], header, value


def _body(request: Request) -> Body:
    if request.body and request.header(b"content-type").partition(";")[0].strip() != "application/json":
        text = request.body.decode("utf-8", "replace")
        message = "Input should be a valid dictionary or object to extract fields from"
        raise Refused(Issue("model_attributes_type", ("body",), message, text))
    return read_object(request.body)


def _preflight(origin: str) -> Reply:
    headers: tuple[tuple[bytes, bytes], ...] = (
        (b"vary", b"Origin"),
        (b"access-control-allow-methods", b"DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"),
        (b"access-control-max-age", b"600"),
        (b"access-control-allow-credentials", b"true"),
    )
    if origin != "http://localhost":
        return Reply(400, b"Disallowed CORS origin", _TEXT, headers)
    return Reply(200, b"OK", _TEXT, (*headers, (b"access-control-allow-origin", origin.encode())))
