"""Command lines of Triton's OpenAI frontend."""

from collections.abc import Iterator
from typing import Final

from engines.launch.flags.triton import RESTRICTED_APIS
from engines.lint.finding import At, Finding
from engines.lint.start import Start

_KSERVE: Final = ("--kserve-http-port", "--kserve-grpc-port")


def rules(start: Start) -> Iterator[Finding]:
    """The faults of flags together."""
    if start.flag("--model-repository") is None:
        message = "no model repository: it does not start"
        yield start.at().error("no-repository", message, "--model-repository DIR")
    if start.flag("--tokenizer") is None:
        message = "no tokenizer: chat is answered with 500, Unknown tokenizer"
        yield start.at().warning("no-tokenizer", message, "--tokenizer MODEL, the one of all its models")
    if start.flag("--load-model") is not None and start.text("--model-control-mode") != "explicit":
        message = "--load-model counts only with explicit control: now all models load"
        yield start.at("--load-model").error("contradiction", message, "--model-control-mode explicit")
    yield from _ports(start)
    for given in start.given:
        if given.flag is not None and given.flag.name == "--openai-restricted-api" and given.values:
            for name in given.values[0].split(","):
                if name not in RESTRICTED_APIS and "$" not in name:
                    at, fix = At(start.file, start.words[given.at].line), f"one of {', '.join(RESTRICTED_APIS)}"
                    yield at.error("flag-value", f"there is no part of the server called {name}", fix)


def _ports(start: Start) -> Iterator[Finding]:
    if not start.has("--enable-kserve-frontends"):
        for name in _KSERVE:
            if start.flag(name) is not None:
                message = f"{name} without --enable-kserve-frontends: nothing listens there"
                yield start.at(name).warning("contradiction", message, "--enable-kserve-frontends")
        return
    ports = {"--openai-port": start.port, "--kserve-http-port": 8000, "--kserve-grpc-port": 8001}
    for name in _KSERVE:
        number = start.number(name)
        ports[name] = ports[name] if number is None else int(number)
    for name in _KSERVE:
        if ports[name] in {ports[other] for other in ports if other != name}:
            yield start.at(name).error("port-taken", f"two of its servers listen at port {ports[name]}", "another port")
            return
