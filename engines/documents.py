"""`docs/engines.md`, written from the profiles."""

from collections.abc import Iterable, Iterator, Mapping

from engines.capabilities import OPENAI, Plain, capabilities
from engines.habits import HABITS, Treatment
from engines.profile import Operation
from engines.registry import PROFILES

_HEAD = """\
# Engines

What becomes of each parameter on its way to each kind of engine, how engines' errors are read, and what engines do
otherwise than OpenAI. This page is written from the profiles in `engines/` by
`turnout engines capabilities --markdown`; the same as JSON comes from `turnout engines capabilities --json`, and for an
engine as it runs from `GET /admin/engines/NAME/capabilities`.

| word | meaning |
| --- | --- |
| pass | sent as it came |
| rename | sent under another name |
| translate | rewritten; told in `x-turnout-translated` |
| emulate | served by several requests whose answers are merged; told in `x-turnout-translated` |
| drop | left out, because the answer is the same without it; told in `x-turnout-dropped` |
| reject | 400 that names the parameter, because the answer would not be what was asked for |

Parameters that no row names follow the model's `unknown_parameters`: `drop` (told), `reject` or `pass`.

A model may have targets of several kinds. The target is chosen by weight and load; then the table of its kind counts,
so that the same request may pass at one target and lose a parameter at another (told). A target whose table refuses
the request is passed over for one that can serve it; the 400 comes when none can.
"""

NOT_THERE = "-"

_TOOLS = """\
Tools are dealt with before this table, unless the model says `tools.parse: off`: `functions` and `function_call`
become `tools` and `tool_choice`, and answers come back in the old form; `parallel_tool_calls: false` gives the first
call only; calls that must come are forced as the engine can be made to. The rows show what is done with what is left.
"""

_TITLES: Mapping[Operation, str] = {
    Operation.CHAT: "Chat completions",
    Operation.COMPLETIONS: "Completions",
    Operation.EMBEDDINGS: "Embeddings",
}


def engines_page() -> str:
    """The whole page."""
    engines = capabilities()
    lines = [_HEAD, *_paths(engines)]
    for operation, title in _TITLES.items():
        lines += ["", f"## {title}", "", *_parameters(engines, operation)]
    lines += ["", "## Variants", "", *_variants(engines)]
    lines += ["", "## Probes", "", *_probes(engines)]
    lines += ["", "## Errors", "", *_errors(engines)]
    lines += ["", "## Habits", "", *_habits()]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield _row(*names)
    yield _row(*("---" for _ in names))
    for row in rows:
        yield _row(*row)


def _paths(engines: list[Plain]) -> Iterator[str]:
    yield "## Operations"
    yield ""
    rows = []
    for operation in Operation:
        served = [engine["operations"].get(operation.value) for engine in engines]
        rows.append([f"`{operation.value}`", *(NOT_THERE if one is None else f"`{one['path']}`" for one in served)])
    yield from _table(["operation", *(engine["title"] for engine in engines)], rows)
    yield ""
    yield "Operations without a table below are passed on whole, but for the model's name."
    yield "Triton serves embeddings where its engine is declared so (`embeddings: true`). A vLLM that should not get"
    yield "long lists of inputs at once says `max_batch`: longer ones are split, and the answers merged in order."


def _parameters(engines: list[Plain], operation: Operation) -> Iterator[str]:
    served = [engine for engine in engines if operation.value in engine["operations"]]
    tables = [engine["operations"][operation.value]["parameters"] for engine in served]
    openai = OPENAI[operation]
    own = sorted(set().union(*tables) - set(openai))
    titles = [engine["title"] for engine in served]
    if operation is Operation.CHAT:
        yield _TOOLS
    yield from _table(["OpenAI's parameter", *titles], _rows(openai, tables))
    yield ""
    yield from _table(["engines' own parameter", *titles], _rows(own, tables))
    for engine in served:
        for default in engine["operations"][operation.value]["defaults"]:
            yield ""
            yield (
                f"{engine['title']} is sent `{default['name']}: {default['value']}` when the client is silent: "
                f"{default['reason']}."
            )


def _rows(names: Iterable[str], tables: list[Plain]) -> Iterator[list[str]]:
    for name in names:
        yield [f"`{name}`", *(_cell(table[name]) for table in tables)]


def _cell(policy: Plain) -> str:
    word = f"rename to `{policy['to']}`" if policy["policy"] == "rename" else policy["policy"]
    note = f": {policy['note']}" if policy["note"] else ""
    values = " or ".join(f"`{value}`" for value in (*policy.get("unless", ()), *policy.get("untold", ())))
    exception = f" ({'unless' if policy['policy'] == 'reject' else 'untold if'} {values})" if values else ""
    return word + note + exception


def _variants(engines: list[Plain]) -> Iterator[str]:
    yield "Chosen by what a running engine says about itself; of guided decoding, by what the configuration says."
    for engine in engines:
        for variant in engine["variants"]:
            yield ""
            lacks = ", ".join(f"`{name}`" for name in variant["lacks"])
            yield f"**{engine['title']}, {variant['title']}**" + (f"; it has no {lacks}." if lacks else ".")
            yield ""
            rows = [
                [f"`{operation}`", f"`{name}`", _cell(policy)]
                for operation, changes in variant["parameters"].items()
                for name, policy in changes.items()
            ]
            yield from _table(["operation", "parameter", "instead"], rows)


def _probes(engines: list[Plain]) -> Iterator[str]:
    def row(title: str, key: str) -> list[str]:
        return [title, *(f"`{value}`" if (value := engine["probes"][key]) else NOT_THERE for engine in engines)]

    def statuses(title: str, key: str) -> list[str]:
        return [title, *(", ".join(map(str, engine["probes"][key])) for engine in engines)]

    rows = [row("health", "health"), statuses("ready", "ready"), statuses("not ready", "not_ready")]
    rows += [row("models", "models"), row("version", "version"), row("metrics", "metrics")]
    rows.append(["idle connections close after", *(f"{e['probes']['keep_alive_seconds']:g} s" for e in engines)])
    yield from _table(["", *(engine["title"] for engine in engines)], rows)


def _errors(engines: list[Plain]) -> Iterator[str]:
    yield "Errors are told by their status and shape; beyond that, texts in which a pattern is found mean:"
    yield ""
    rows = []
    for engine in engines:
        for rule in engine["errors"]:
            statuses = ", ".join(map(str, rule["statuses"])) or "any"
            param = f"`{rule['param']}`" if rule["param"] else ""
            rows.append([engine["title"], f"`{rule['pattern']}`", statuses, f"`{rule['kind']}`", param])
    yield from _table(["engine", "pattern", "status", "meaning", "parameter"], rows)


def _habits() -> Iterator[str]:
    yield "Each has been seen in recordings of the real server or read in its source."
    yield "*Made the same* and *refused* are held by tests; *passed on* has its reason."
    for topic, habits in HABITS.items():
        yield ""
        yield f"### {topic}"
        yield ""
        rows = []
        for habit in habits:
            who = "all" if len(habit.engines) == len(PROFILES) else ", ".join(PROFILES[e].title for e in habit.engines)
            treatment = habit.treatment.value
            shown = f"*{treatment}*" if habit.treatment is Treatment.PASSED_ON else treatment
            tests = "<br>".join(f"`{_short(test)}`" for test in habit.tests)
            rows.append([habit.what, who, f"{shown}: {habit.how}", tests])
        yield from _table(["habit", "engine", "what clients see", "held by"], rows)


def _short(test: str) -> str:
    file, _, name = test.partition("::")
    return f"{file.removeprefix('tests/')}::{name}"
