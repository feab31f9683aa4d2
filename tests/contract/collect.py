"""Makes the compact recordings of this folder out of the full ones.

    python -m tests.contract.collect FOLDER    # FOLDER holds vllm/, trtllm/ and triton/

One JSON line per case: the requests as they were sent, and of the answers what the contract compares. Of runs of vLLM
events that look alike only the first and the last stay (its tokens are not the simulator's); of metrics only names,
types and label names; long texts are cut.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.contract.cases import OUT_OF_SCOPE
from tests.contract.metrics import families
from tests.contract.shapes import alike, said

RECORDINGS = Path(__file__).parent / "recordings"
LONG = 2000
WORDS = "green river "

# The full recordings keep only the beginning of these bodies.
LONG_CHAT: Mapping[str, Any] = {"model": "tiny-chat", "messages": [{"role": "user", "content": WORDS * 800}]}
REBUILT: Mapping[str, Mapping[str, Any]] = {
    "chat_context_too_long": LONG_CHAT,
    "chat_context_too_long_stream": {**LONG_CHAT, "stream": True},
    "chat_truncate_prompt_tokens": {**LONG_CHAT, "truncate_prompt_tokens": 50, "max_tokens": 4},
    "messages_too_long": {**LONG_CHAT, "max_tokens": 5},
    "comp_too_long": {"model": "tiny-chat", "prompt": WORDS * 800},
}


def main(folder: Path) -> None:
    RECORDINGS.mkdir(exist_ok=True)
    _write("vllm", _vllm(folder / "vllm"))
    _write("trtllm", _scripted(folder / "trtllm" / "executed_transcription"))
    _write("triton", _scripted(folder / "triton" / "openai_frontend"))
    _write("kserve", _kserve(folder / "triton" / "kserve"))


def _kserve(folder: Path) -> Iterator[Mapping[str, Any]]:
    """What concerns the repository, in the order in which it was recorded: each case depends on those before."""
    for listed in json.loads((folder / "index.json").read_text()):
        name = listed["case"]
        if not name.startswith(("generate", "infer", "metrics", "v1_", "model_config", "repo_load_with")):
            case = json.loads((folder / f"{name}.json").read_text())
            asked = {key: case["request"][key] for key in ("method", "path", "body")}
            yield {
                "case": name,
                "request": asked,
                "status": case["response"]["status"],
                "json": case["response"].get("json"),
            }


def _write(name: str, lines: Iterator[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (RECORDINGS / f"{name}.jsonl").write_text(text)


def _vllm(folder: Path) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        case = json.loads(path.read_text())
        # The Rust frontend is another server; the parsers ran without one.
        if path.name.startswith("rust_") or "exchanges" not in case:
            continue
        if case["case"] in OUT_OF_SCOPE["vllm"]:
            yield {"case": case["case"]}
            continue
        exchanges = [_vllm_exchange(case["case"], each) for each in case["exchanges"]]
        yield {"case": case["case"], "server": case["server"], "exchanges": [each for each in exchanges if each]}


def _vllm_exchange(name: str, exchange: Mapping[str, Any]) -> Mapping[str, Any] | None:
    request, response = exchange["request"], exchange["response"]
    if not isinstance(request, dict) or "status" not in response or not request.get("method"):
        return None
    body = REBUILT.get(name, request.get("body"))
    headers = [list(pair) for pair in request["headers"]]
    if body is not None:
        headers.append(["Content-Type", "application/json"])
    return _request(request, headers, body if body is not None else request.get("body_raw")) | _vllm_response(response)


def _vllm_response(response: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": response["status"], "headers": _headers(response["headers"])}
    if "events" in response:
        events = [each["raw"] for each in response["events"]]
        chunks = {each["chunk"] for each in response["events"]}
        return shown | {
            "events": _thinned(events),
            "events_per_chunk": 1 if len(chunks) == len(events) else 2,
            "complete": response["end"] == "last-chunk",
            "said": said(events),
        }
    return shown | _body(response.get("body") or "")


def _scripted(folder: Path) -> Iterator[Mapping[str, Any]]:
    cases = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.name != "index.json"]
    scripts: dict[str, list[str]] = {}
    for case in cases:
        named = re.search(r"\[\[(\w+)\]\]", json.dumps(case.get("request", {}).get("body")))
        chat = case.get("request", {}).get("path") == "/v1/chat/completions"
        if named and chat and case.get("scripted_model_output_chunks"):
            scripts[named[1]] = case["scripted_model_output_chunks"]
    yield {"scripts": scripts}
    for case in cases:
        if case["case"] in OUT_OF_SCOPE[folder.parent.name]:
            yield {"case": case["case"]}
            continue
        exchanges = []
        if "request" in case:
            exchanges.append(_scripted_exchange(case["request"], case["response"]))
        yield {"case": case["case"], "server": case.get("server_args") or "", "exchanges": exchanges}


def _scripted_exchange(request: Mapping[str, Any], response: Mapping[str, Any]) -> Mapping[str, Any]:
    headers = [list(pair) for pair in request["headers"].items()]
    body = request.get("body")
    if body is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(["Content-Type", "application/json"])
    shown: dict[str, Any] = {"status": response["status"], "headers": _headers(response["headers"])}
    if "sse_events" in response:
        events = [part for part in re.split(r"(?<=\n\n)", response["sse_raw"]) if part]
        same = response["n_http_chunks"] == len(events)
        shown |= {
            "events": events,
            "events_per_chunk": 1 if same else 2,
            "complete": response["complete"],
            "said": said(events),
        }
    else:
        shown |= _body(response.get("body") or "")
    return _request(request, headers, body) | shown


def _request(request: Mapping[str, Any], headers: list[list[str]], body: object) -> dict[str, Any]:
    return {
        "method": request["method"],
        "path": request["path"],
        "request_headers": headers,
        "http": request.get("http", "1.1"),
        "body": body,
    }


def _headers(headers: list[list[str]]) -> dict[str, str]:
    kept = ("content-type", "vary", "allow", "location", "access-control-allow-origin")
    return {name.lower(): value for name, value in headers if name.lower() in kept}


def _body(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        return {"text": ""}
    if text.startswith("# HELP"):
        return {"families": families(text)}
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text[:LONG]}
    return {"json": _cut(value)}


def _cut(value: object) -> object:
    """Long strings and lists of numbers end early; their shape stays."""
    if isinstance(value, str):
        return value[:LONG]
    if isinstance(value, list):
        if len(value) > 8 and all(isinstance(each, float) for each in value):
            return value[:4]
        return [_cut(each) for each in value if not (isinstance(each, str) and each.startswith("... "))]
    if isinstance(value, dict):
        return {key: _cut(each) for key, each in value.items()}
    return value


def _thinned(events: list[str]) -> list[str]:
    out: list[str] = []
    for index, event in enumerate(events):
        last = index == len(events) - 1 or not alike(event, events[index + 1])
        if last or not out or not alike(event, out[-1]):
            out.append(event)
    return out


if __name__ == "__main__":
    main(Path(sys.argv[1]))
