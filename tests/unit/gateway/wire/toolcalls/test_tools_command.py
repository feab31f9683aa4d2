"""`turnout tools` and the document that it keeps up to date."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.tools import app
from gateway.wire.toolcalls.table import format_table, updated

CALL = '<think>hm</think>Ok <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
DOCUMENT = Path(__file__).parents[5] / "docs" / "tool-calls.md"


def run(*arguments: str, text: str = "") -> str:
    result = CliRunner().invoke(app, arguments, input=text)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_document_is_up_to_date() -> None:
    """`turnout tools table --write docs/tool-calls.md` renews it."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert updated(text) == text


def test_the_table_can_be_printed_and_written(tmp_path: Path) -> None:
    """A document without a place for it is refused."""
    assert run("table") == format_table()
    document = tmp_path / "doc.md"
    document.write_text(DOCUMENT.read_text(encoding="utf-8").replace("| `hermes` |", "| `old` |"), encoding="utf-8")
    run("table", "--write", str(document))
    assert document.read_text(encoding="utf-8") == DOCUMENT.read_text(encoding="utf-8")
    document.write_text("nothing", encoding="utf-8")
    assert CliRunner().invoke(app, ["table", "--write", str(document)]).exit_code != 0


def test_parse_shows_reasoning_content_and_calls() -> None:
    """For people, and as JSON."""
    shown = run("parse", "--format", "qwen3", text=CALL)
    assert "reasoning: 'hm'\ncontent: 'Ok '\ncall: f {\"a\": 1}  (call_" in shown
    assert shown.endswith("finish: tool_calls\n")
    plain = json.loads(run("parse", "-f", "hermes", "--json", text=CALL))
    assert plain["tool_calls"][0]["arguments"] == '{"a": 1}'
    assert plain["finish_reason"] == "tool_calls"


def test_parse_streams_in_pieces() -> None:
    """Each with the deltas that it made certain."""
    shown = run("parse", "--format", "hermes", "--stream", "--piece", "5", text="Hello <tool")
    assert (
        shown
        == "'Hello'\n    content 'Hello'\n' <too'\n    content ' '\n'l'\nend\n    content '<tool'\n    finish stop\n"
    )


def test_parse_takes_the_offered_tools(tmp_path: Path) -> None:
    """A list or a request; and everything else that a request decides."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}]
    text = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    for content in (tools, {"model": "m", "tools": tools}):
        file = tmp_path / "tools.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        assert 'f {"a": "1"}' in run("parse", "-f", "qwen3_xml", "--tools", str(file), text=text)
    assert "finish: stop" in run("parse", "-f", "hermes", "--tool-choice", "f", text='{"a": 1}')
    assert "content: '<tool" in run("parse", "-f", "hermes", "--tool-choice", "none", text=text)
    assert "reasoning: 'x'" in run("parse", "-f", "hermes", "--starts-in-reasoning", text="x")
    cut = run("parse", "-f", "qwen3_xml", "--finish-reason", "length", text=text[:-30])
    assert "not whole" in cut


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "1"])
def test_bad_tools_are_told(tmp_path: Path, content: str) -> None:
    """With the file's name."""
    file = tmp_path / "tools.json"
    file.write_text(content, encoding="utf-8")
    result = CliRunner().invoke(app, ["parse", "-f", "hermes", "--tools", str(file)])
    assert result.exit_code == 2


def test_an_unknown_format_suggests_close_ones() -> None:
    """And costs exit code 2."""
    result = CliRunner().invoke(app, ["parse", "-f", "hermez"], input="x")
    assert result.exit_code == 2
    assert "hermes" in result.output


def test_detect_reads_templates_texts_and_tokenizers(tmp_path: Path) -> None:
    """From a file, from standard input, from a folder, and by name where nothing else is known."""
    template = tmp_path / "chat_template.jinja"
    template.write_text("{% for m in messages %}<tool_call>\n<function=x>\n<parameter=y>{% endfor %}", encoding="utf-8")
    assert run("detect", str(template)).startswith("qwen3_xml  (template: ")
    assert run("detect", str(tmp_path)).startswith("qwen3_xml  (template: ")
    assert run("detect", "-", text=CALL).startswith("hermes  (text: <tool_call>)")
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    assert run("detect", str(folder)).startswith("hermes  (name: ")
    config = {"added_tokens_decoder": {"1": {"content": "[TOOL_CALLS]"}, "2": {"content": "[ARGS]"}}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert run("detect", str(folder)).startswith("mistral_v11  (template: ")
    assert run("detect", str(folder / "tokenizer_config.json")).startswith("mistral_v11")
    assert run("detect", "--model", "openai/gpt-oss-20b").startswith("harmony")
    assert CliRunner().invoke(app, ["detect", "-"], input="hello").exit_code == 1


def test_detect_reads_named_templates_and_other_tokenizer_files(tmp_path: Path) -> None:
    """A list of templates; added tokens in tokenizer.json; broken JSON is nothing."""
    named = {"chat_template": [{"name": "tool_use", "template": "{{ x }}<|START_ACTION|>"}, "odd"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named), encoding="utf-8")
    assert run("detect", str(tmp_path)).startswith("cohere")
    (tmp_path / "tokenizer_config.json").write_text("{", encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text('{"added_tokens": [{"content": "<|python_tag|>"}, 3]}', encoding="utf-8")
    assert run("detect", str(tmp_path)).startswith("llama3_json")


def test_detect_asks_for_something_to_look_at() -> None:
    result = CliRunner().invoke(app, ["detect"])

    assert result.exit_code == 2
    assert "Give a FILE, - for standard input, or" in " ".join(result.output.replace("│", " ").split())
