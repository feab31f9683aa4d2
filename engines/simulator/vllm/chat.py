"""vLLM's `/v1/chat/completions`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engines.simulator import tokens
from engines.simulator.generation import Generated, Limits, generate
from engines.simulator.guided import held
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.prompt import first_call, one_call, only_calls, prompt_tokens, text_of, turn
from engines.simulator.sampling import stops
from engines.simulator.schema import Body
from engines.simulator.script import Answer, Turn
from engines.simulator.vllm import answers, render
from engines.simulator.vllm.accepted import Chat
from engines.simulator.vllm.context import check_length
from engines.simulator.vllm.messages import check_messages, choice_of
from engines.simulator.vllm.rules import check_minimum, check_sampling, checked_chat
from engines.simulator.wire import Work


def plan(body: Body, find: render.Find, request_id: str) -> Work:
    """The work for a chat request. Raises `BadRequest`."""
    said = say(body, find)
    chat, generated, answer = said.chat, said.generated, said.answer
    head = render.Head(request_id, said.name)
    if chat.body.get("stream"):
        return render.stream(head, chat, answers.steps(chat, generated), generated, answer)
    return render.whole(head, chat, [answers.message(chat, generated)] * chat.n, generated, answer)


@dataclass(frozen=True, slots=True)
class Said:
    """An accepted chat request and what the model says to it. `name` is the model's name in answers."""

    name: str
    chat: Chat
    answer: Answer
    generated: Generated


def say(body: Body, find: render.Find) -> Said:
    """The model's answer to a chat request, before it is rendered. Raises `BadRequest`."""
    checked = checked_chat(body)
    model, name = find(checked.get("model"))
    chat, answer = _accept(checked, model)
    return Said(name, chat, answer, generate(answer, model.markup or Markup.HERMES, _limits(chat)))


def _accept(body: Body, model: SimulatedModel) -> tuple[Chat, Answer]:
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    check_minimum(body, "max_tokens")
    check_messages(messages, body, model)
    choice = choice_of(body, model)
    # A reasoning server is taken to run with --exclude-tools-when-tool-choice-none (recording `think_tool_none`).
    tools = None if choice == "none" and model.reasoning else body.get("tools")
    size = prompt_tokens(messages, tools)
    characters = sum(len(text_of(message.get("content"))) for message in messages)
    if (cut := body.get("truncate_prompt_tokens")) is not None:
        size, characters = min(size, cut), 0
    check_length(size, characters, model.max_length)
    check_sampling(body, model)
    ids = None
    if body.get("return_token_ids"):
        ids = tuple(tokens.token_id(text_of(message.get("content"))) for message in messages)
    off = (body.get("chat_template_kwargs") or {}).get("enable_thinking") is False
    thinking = model.reasoning is not None and not off and body.get("reasoning_effort") != "none"
    answer = _ask(model, turn(messages, tools), body, choice)
    return Chat(model, body, choice, size, ids, thinking), answer


def _ask(model: SimulatedModel, asked: Turn, body: Body, choice: str) -> Answer:
    """The model's answer under the grammar that a tool choice sets."""
    match choice:
        case "named":
            return model.script(replace(asked, forced=body["tool_choice"]["function"]["name"]))
        case "required":
            answer = model.script(asked)
            called = first_call(answer)
            if answer.pieces or (called is not None and called.name in asked.tools):
                return only_calls(answer)
            return model.script(replace(asked, forced=body["tools"][0]["function"]["name"]))
        case _:
            answer = model.script(asked)
            if model.guided:
                answer = held(answer, body.get("response_format"))
            return one_call(answer) if body.get("parallel_tool_calls") is False else answer


def _limits(chat: Chat) -> Limits:
    body = chat.body
    wanted = body.get("max_completion_tokens") or body.get("max_tokens")
    room = chat.model.max_length - chat.prompt_tokens
    return Limits(
        tokens=min(wanted, room) if wanted else room,
        stops=stops(body.get("stop")),
        keep_stop=bool(body.get("include_stop_str_in_output")),
        ignore_end=bool(body.get("ignore_eos")),
        hold_back=True,
    )
