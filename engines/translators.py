"""Functions for `Translate` rows that look at one member's value. Chat messages have a module of their own."""

from collections.abc import Mapping

import msgspec

from engines.policy import NULL, Edit, Members, ParameterRefused, Translator

ABSENT = (b"null", b"[]")
NO_CHOICE = (b"null", b'"none"', b'"auto"')
GUIDED_FIELDS: Mapping[str, bytes] = {
    "guided_json": b"json",
    "guided_regex": b"regex",
    "guided_choice": b"choice",
    "guided_grammar": b"grammar",
    "guided_whitespace_pattern": b"whitespace_pattern",
}
STREAM_OPTIONS = frozenset({"include_usage", "continuous_usage_stats"})


class _Typed(msgspec.Struct):
    type: str | None = "text"


def compact(raw: msgspec.Raw) -> bytes:
    """Give a small JSON value without blanks between its tokens; for comparison only."""
    return b"".join(bytes(raw).split())


def leave_out(*values: bytes) -> Translator:
    """Leave a member out when it has one of these values, which this engine does not take for its default."""

    def translate(name: str, members: Members) -> Edit | None:
        return {name: None} if compact(members[name]) in values else None

    return translate


def has_tools(members: Members) -> bool:
    """Say whether the client gave at least one tool."""
    tools = members.get("tools")
    return tools is not None and compact_start(tools) not in ABSENT


def compact_start(raw: msgspec.Raw) -> bytes:
    """Like `compact`, but only tells short values apart: never copies a long list of tools twice."""
    data = bytes(raw)
    return b"".join(data.split()) if len(data) <= 32 else data[:32]


def empty_tools(name: str, members: Members) -> Edit | None:
    """Leave out `tools: []`, which OpenAI takes for no tools and vLLM answers with 400 (recording `tools_empty`)."""
    return {name: None} if compact_start(members[name]) == b"[]" else None


def tool_choice(name: str, members: Members) -> Edit | None:
    """Leave out a choice among no tools; refuse what no engine has.

    vLLM and trtllm-serve answer 400 for "auto" without tools (`tool_choice_without_tools`,
    `tools_choice_auto_no_tools`).
    """
    value = bytes(members[name])
    if b'"allowed_tools"' in value:
        raise ParameterRefused(name, "'tool_choice' of type 'allowed_tools' is not supported by this model's engine.")
    if has_tools(members):
        return None
    if compact(members[name]) in NO_CHOICE:
        return {name: None}
    raise ParameterRefused(name, "'tool_choice' is only allowed when 'tools' are given.", "invalid_value")


def parallel_tool_calls(name: str, members: Members) -> Edit | None:
    """Leave it out where it changes nothing; refuse a promise of one call at most that the engine cannot keep."""
    if bytes(members[name]) != b"false" or not has_tools(members):
        return {name: None}
    raise ParameterRefused(name, "'parallel_tool_calls: false' is not supported by this model's engine.")


def structured_outputs(name: str, members: Members) -> Edit | None:
    """Turn vLLM's old `guided_*` members into the new one; the old are not read (`chat_guided_choice_legacy`)."""
    there = members.get("structured_outputs")
    if there is not None and there != NULL:
        raise ParameterRefused(name, f"'{name}' cannot be used together with 'structured_outputs'.", "invalid_value")
    given = [(key, members[old]) for old, key in GUIDED_FIELDS.items() if old in members and members[old] != NULL]
    if not given:
        return {name: None}
    body = b",".join(b'"' + key + b'":' + bytes(raw) for key, raw in given)
    return {name: None, "structured_outputs": b"{" + body + b"}"}


def stream_options(name: str, members: Members) -> Edit | None:
    """Say `include_usage: false` where the client is silent and leave out keys that trtllm-serve refuses.

    There `{}` turns usage on (`chat_stream_options_empty`), and OpenAI's `include_obfuscation` is an unknown key.
    """
    try:
        options = msgspec.json.decode(members[name], type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None
    if "include_usage" in options and options["include_usage"] != NULL and options.keys() <= STREAM_OPTIONS:
        return None
    kept = {key: raw for key, raw in options.items() if key in STREAM_OPTIONS and raw != NULL}
    kept.setdefault("include_usage", msgspec.Raw(b"false"))
    return {name: msgspec.json.encode(kept)}


def reasoning_effort(name: str, members: Members) -> Edit | None:
    """Give the nearest of low, medium and high, the only values trtllm-serve has in every version."""
    value = bytes(members[name])
    nearest = {b'"minimal"': b'"low"', b'"xhigh"': b'"high"', b'"max"': b'"high"'}.get(value)
    if nearest is not None:
        return {name: nearest}
    if value == b'"none"':
        raise ParameterRefused(
            name,
            "'reasoning_effort: none' is not supported by trtllm-serve; use 'chat_template_kwargs' if the model has a "
            "switch for thinking.",
        )
    return None


def one_prompt(name: str, members: Members) -> Edit | None:
    """Take the only prompt out of its list; Triton takes one string (`completions_prompt_list`)."""
    return _only(name, members, "Triton completes one text prompt per request: send a single string.")


def one_input(name: str, members: Members) -> Edit | None:
    """Take the only input out of its list; Triton embeds one string or one list of token ids at a time."""
    return _only(name, members, "Triton embeds one input per request: send a single string.", tokens=True)


def _only(name: str, members: Members, refusal: str, *, tokens: bool = False) -> Edit | None:
    raw = bytes(members[name])
    if not raw.startswith(b"["):
        return None
    items = msgspec.json.decode(raw, type=list[msgspec.Raw])
    first = bytes(items[0])[:1] if items else b""
    if len(items) == 1 and (first == b'"' or (tokens and first == b"[")):
        return {name: bytes(items[0])}
    if not items or (tokens and (first == b"-" or first.isdigit())):
        return None
    raise ParameterRefused(name, refusal, "unsupported_value")


def echo(name: str, members: Members) -> Edit | None:
    """Refuse echo in a stream, which Triton answers by cutting the connection (`completions_echo_stream`)."""
    stream = members.get("stream")
    if bytes(members[name]) == b"true" and stream is not None and bytes(stream) == b"true":
        raise ParameterRefused(name, "'echo' is not supported together with 'stream' by Triton.")
    return None


def response_format(name: str, members: Members) -> Edit | None:
    """Refuse all but text: Triton takes `json_object` and never tells its engine (`chat_response_format_json`)."""
    try:
        kind = msgspec.json.decode(members[name], type=_Typed).type
    except msgspec.DecodeError:
        kind = ""
    if kind is None or kind == "text":
        return {name: None}
    raise ParameterRefused(
        name, "'response_format' is not supported by Triton: it would not keep the answer to the format asked for."
    )


def tools_with_parameters(name: str, members: Members) -> Edit | None:
    """Leave out an empty list and give each function a schema.

    Triton fails with 500 when a chosen function has none (`tools_no_parameters_named`). For OpenAI a function without
    `parameters` takes none, which is what the schema put in says.
    """
    try:
        tools = msgspec.json.decode(members[name], type=list[dict[str, msgspec.Raw]])
        functions = [msgspec.json.decode(tool.get("function", b"{}"), type=dict[str, msgspec.Raw]) for tool in tools]
    except msgspec.DecodeError:
        return None
    if not tools:
        return {name: None}
    changed = False
    for tool, function in zip(tools, functions, strict=True):
        if "function" in tool and function.get("parameters", NULL) == NULL:
            function["parameters"] = msgspec.Raw(b'{"type":"object","properties":{}}')
            tool["function"] = msgspec.Raw(msgspec.json.encode(function))
            changed = True
    return {name: msgspec.json.encode(tools)} if changed else None
