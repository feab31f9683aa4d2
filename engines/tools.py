"""Functions for `Translate` rows about tools and the choice among them."""

from collections.abc import Sequence

import msgspec

from engines.policy import NULL, Edit, Members, ParameterRefused

AUTO, NONE, REQUIRED = (msgspec.Raw(mode) for mode in (b'"auto"', b'"none"', b'"required"'))
MODES = (AUTO, NONE, REQUIRED)
NO_CHOICE = (NULL, NONE, AUTO)
EMPTY = (msgspec.Raw(b"[]"), msgspec.Raw(b"[ ]"))
"""Compared as raw JSON, which never reads a long list of tools; nobody writes more blanks."""
NO_TOOLS = (*EMPTY, NULL)
ALLOWED_TOOLS = b'"allowed_tools"'


class _Named(msgspec.Struct):
    name: str | None = None


class _AllowedTool(msgspec.Struct):
    function: _Named | None = None


class _AllowedTools(msgspec.Struct):
    mode: str = "auto"
    tools: list[_AllowedTool] = []


class _Allowing(msgspec.Struct):
    type: str = ""
    allowed_tools: _AllowedTools | None = None


def has_tools(members: Members) -> bool:
    """Say whether the client gave at least one tool."""
    tools = members.get("tools")
    return tools is not None and tools not in NO_TOOLS


def offered_tools(name: str, members: Members) -> Edit | None:
    """Leave out `tools: []`, and tools that an `allowed_tools` choice does not allow.

    OpenAI takes an empty list for no tools; vLLM answers 400 (recording `tools_empty`).
    """
    raw = members[name]
    if raw in EMPTY:
        return {name: None}
    choice = members.get("tool_choice")
    if choice is None or choice in MODES or ALLOWED_TOOLS not in bytes(choice):
        return None
    given = _tools(raw)
    kept = allowed_tools(given, choice)
    return None if len(kept) == len(given) else {name: msgspec.json.encode(kept)}


def allowed_tools(given: Sequence[Members], choice: msgspec.Raw) -> list[Members]:
    """Give the tools that an `allowed_tools` choice leaves; all of them for any other choice."""
    allowed = _allowed(choice)
    if allowed is None:
        return list(given)
    names = {tool.function.name for tool in allowed.tools if tool.function is not None}
    return [tool for tool in given if _function_name(tool) in names]


def tool_choice(name: str, members: Members) -> Edit | None:
    """Leave out a choice among no tools; turn `allowed_tools` into its mode (`offered_tools` leaves the others out).

    vLLM and trtllm-serve answer 400 for "auto" without tools (`tool_choice_without_tools`,
    `tools_choice_auto_no_tools`), and every engine refuses `allowed_tools` (`tool_choice_allowed_tools`). A null is
    left out: for OpenAI it means "auto" when there are tools.
    """
    raw = members[name]
    tools = members.get("tools")
    if tools is None or tools in NO_TOOLS:
        if raw in NO_CHOICE:
            return {name: None}
        raise ParameterRefused(name, "'tool_choice' is only allowed when 'tools' are given.", "invalid_value")
    if raw in MODES:
        return None
    if raw == NULL:
        return {name: None}
    allowed = _allowed(raw)
    if allowed is None:
        return None
    if allowed.mode not in {"auto", "required"} or not allowed_tools(_tools(members["tools"]), raw):
        raise ParameterRefused(name, "'allowed_tools' must allow at least one of the 'tools'.", "invalid_value")
    return {name: msgspec.json.encode(allowed.mode)}


def tool_choice_for_triton(name: str, members: Members) -> Edit | None:
    """As `tool_choice`; refuses "required" among several, where Triton only ever calls the first.

    Recordings `tools_llama3_required`, `tools_mistral_required`.
    """
    edit = tool_choice(name, members)
    mode = bytes(members[name]) if edit is None else edit[name]
    if mode == b'"required"' and len(allowed_tools(_tools(members["tools"]), members[name])) > 1:
        raise ParameterRefused(
            name, "'tool_choice: required' with several tools is not supported by Triton, which would call the first."
        )
    return edit


def _allowed(choice: msgspec.Raw) -> _AllowedTools | None:
    if ALLOWED_TOOLS not in bytes(choice):
        return None
    try:
        read = msgspec.json.decode(choice, type=_Allowing)
    except msgspec.DecodeError:
        return None
    return read.allowed_tools if read.type == "allowed_tools" else None


def _tools(raw: msgspec.Raw) -> list[Members]:
    try:
        return msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
    except msgspec.DecodeError:
        return []


def _function_name(tool: Members) -> str | None:
    try:
        return msgspec.json.decode(tool.get("function", b"{}"), type=_Named).name
    except msgspec.DecodeError:
        return None


def tools_with_parameters(name: str, members: Members) -> Edit | None:
    """As `offered_tools`, and give each function a schema.

    Triton fails with 500 when a chosen function has none (`tools_no_parameters_named`). For OpenAI a function without
    `parameters` takes none, which is what the schema put in says.
    """
    edit = offered_tools(name, members)
    raw = members[name]
    if edit is not None:
        new = edit[name]
        if new is None:
            return edit
        raw = msgspec.Raw(new)
    try:
        tools = msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
        functions = [msgspec.json.decode(tool.get("function", b"{}"), type=dict[str, msgspec.Raw]) for tool in tools]
    except msgspec.DecodeError:
        return edit
    changed = False
    for tool, function in zip(tools, functions, strict=True):
        if "function" in tool and function.get("parameters", NULL) == NULL:
            function["parameters"] = msgspec.Raw(b'{"type":"object","properties":{}}')
            tool["function"] = msgspec.Raw(msgspec.json.encode(function))
            changed = True
    return {name: msgspec.json.encode(tools)} if changed else edit


def parallel_tool_calls(name: str, members: Members) -> Edit | None:
    """Leave it out where it changes nothing; refuse a promise of one call at most that the engine cannot keep."""
    if bytes(members[name]) != b"false" or not has_tools(members):
        return {name: None}
    raise ParameterRefused(name, "'parallel_tool_calls: false' is not supported by this model's engine.")


def parallel_or_absent(name: str, members: Members) -> Edit | None:
    """Leave out a null, which vLLM reads as false (its source); OpenAI's default is true."""
    return {name: None} if bytes(members[name]) == b"null" else None
