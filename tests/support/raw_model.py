"""Engines without a tool parser, which give the model's raw text."""

from collections.abc import Iterator

from engines.profile import EngineKind
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, completion, delta, event
from tests.support.scripted import Talk, reply, stream

TIER_1 = (
    "qwen3_xml", "hermes", "harmony", "deepseek_v32", "deepseek_v4", "deepseek_v41", "glm45", "glm47", "kimi_k2",
    "minimax_m2", "llama3_json", "mistral_v11", "mistral_v3", "deepseek_v3", "deepseek_v31", "gemma4",
)  # fmt: skip
"""The formats of most models."""

ANSWER = "It is 21 degrees in Paris."
REFUSAL: Json = {
    EngineKind.VLLM: {
        "error": {
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        }
    },
    EngineKind.TRITON: {"detail": "having tools in the request requires --tool-call-parser to be set"},
}


class RawModel:
    """An engine without a tool parser: it refuses tools as its kind does, and gives the model's text otherwise."""

    def __init__(self, kind: EngineKind, text: str, *later: str, piece: int = 3) -> None:
        """``text`` is the first answer, ``later`` those to the results of its calls; after these comes `ANSWER`."""
        self.kind = kind
        self.text = text
        self.later = later
        self.piece = piece
        self.finish = "stop"
        self.bodies: list[Json] = []

    async def __call__(self, talk: Talk) -> None:
        body = talk.request.json
        self.bodies.append(body)
        text = self._text(body["messages"])
        if refusal := self._refusal(body):
            await reply(refusal, status=400)(talk)
        elif body.get("stream"):
            await stream(*self._events(text, body))(talk)
        else:
            answer = completion(text)
            answer["choices"][0]["finish_reason"] = self.finish
            await reply(answer)(talk)

    def _text(self, messages: Json) -> str:
        if messages[-1]["role"] != "tool":
            return self.text
        answered: int = sum(message["role"] == "assistant" for message in messages)
        texts = (self.text, *self.later, ANSWER)
        return texts[min(answered, len(texts) - 1)]

    def _refusal(self, body: Json) -> Json:
        if self.kind is EngineKind.TRTLLM:
            assert isinstance(body.get("tool_choice", "auto"), str)
            return None
        return REFUSAL[self.kind] if body.get("tools") and body.get("tool_choice") != "none" else None

    def _events(self, text: str, body: Json) -> Iterator[bytes]:
        yield event(delta("", role="assistant"))
        for start in range(0, len(text), self.piece):
            yield event(delta(text[start : start + self.piece]))
        yield event(delta(finish=self.finish))
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
            yield event({**delta(), "choices": [], "usage": usage})
        yield DONE
