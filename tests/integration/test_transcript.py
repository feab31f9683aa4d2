"""The session that docs/operations.md shows can be had: every command prints what stands there."""

from pathlib import Path

from tests.conftest import ROOT
from tests.support.transcript import Step, rewritten, run, steps_of

DOCUMENT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_commands_of_the_operations_manual_print_what_it_says(tmp_path: Path) -> None:
    """From init to a served request, a typo and its repair, a change under load, and a doctor with much to find.

    `python -m tests.support.transcript docs/operations.md` writes the output anew.
    """
    steps = steps_of(DOCUMENT)
    assert run(steps, tmp_path) == steps


def test_the_doctor_of_the_manual_has_at_least_fifteen_mistakes_to_find() -> None:
    """One engine or one model of its file for each, and each is named in what it prints."""
    written = next(step for step in steps_of(DOCUMENT) if step.command.startswith("cat >faults.yaml"))
    found = next(step for step in steps_of(DOCUMENT) if step.command.startswith("turnout doctor faults.yaml"))
    names = [line.split(":")[0].strip() for line in written.command.splitlines() if line.startswith("  ")]
    headlines = [line for line in found.output.splitlines() if line.startswith(("error ", "warning "))]
    missed = [name for name in names if not any(name in line for line in headlines)]
    assert missed == []
    assert len(headlines) >= 15
    assert found.output.count("    fix: ") == len(headlines)


def test_a_document_keeps_its_text_around_its_commands() -> None:
    text = "Before.\n\n```console\n$ one\nold\n$ two \\\n> more\n```\nBetween.\n```console\n$ three\n```\n"
    steps = [Step("one", "new\n"), Step("two \\\nmore", ""), Step("three", "3\n")]
    assert [step.command for step in steps_of(text)] == [step.command for step in steps]
    made = rewritten(text, steps)
    assert made == text.replace("old", "new").replace("three\n", "three\n3\n")
    assert steps_of(made) == steps
