"""What an engine lists, against what the file asks it for."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from engines.probes import EngineModel, parse_models
from engines.profile import EngineKind
from gateway.doctor.asking import Answers, Question
from gateway.doctor.checks.check import of_model
from gateway.doctor.checks.identity import listing
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Subject

_JOINTS: Final = ("_", "-", ":", ".", "/")
"""What may stand between the name of a model and that of its adapter."""

_SHOWN: Final = 8
"""Names of an engine's list that are shown."""


def listed(subject: Subject, answers: Answers) -> tuple[EngineModel, ...]:
    """The models that the engine lists; none if its list cannot be read."""
    heard = answers[listing(subject.site)]
    return parse_models(heard.body) if heard.ok else ()


class Listed:
    """The engine knows the model by the name that the file has for it."""

    name = "model"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The list of models."""
        return (listing(subject.site),)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """A name that is not listed. trtllm-serve answers to any name, so there it is only worth a word."""
        names = [model.id for model in listed(subject, answers)]
        if not names or subject.model in names:
            return
        lenient = subject.profile.kind is EngineKind.TRTLLM
        evidence = f"the engine does not list '{subject.model}'; it lists {', '.join(sorted(names)[:_SHOWN])}"
        level = Level.WARNING if lenient else Level.ERROR
        yield of_model(level, subject, self.name, evidence, _remedy(subject, names))


def _remedy(subject: Subject, names: Sequence[str]) -> str:
    line = subject.at("model")
    if (flag := _adapter_flag(subject, names)) is not None:
        return flag
    close = get_close_matches(subject.model.lower(), [name.lower() for name in names], n=1, cutoff=0.4)
    if close or len(names) == 1:
        right = next(name for name in names if not close or name.lower() == close[0])
        return f"{line}: {right}"
    served = {
        EngineKind.VLLM: f"--served-model-name {subject.model}",
        EngineKind.TRTLLM: f"--served_model_name {subject.model}",
        EngineKind.TRITON: f"a folder {subject.model}/ in its --model-repository",
    }
    return f"{line}: one of the listed names, or start the engine with {served[subject.profile.kind]}"


def _adapter_flag(subject: Subject, names: Sequence[str]) -> str | None:
    """What loads an adapter, where the name looks like one: a listed model's with a suffix, or with "lora" in it."""
    name = subject.model
    base = next((one for one in names if name.startswith(one) and name[len(one) :][:1] in _JOINTS), None)
    if base is None and "lora" not in name.lower():
        return None
    match subject.profile.kind:
        case EngineKind.VLLM:
            flags = f"--enable-lora --lora-modules {name}=/path/to/adapter"
            return f"start the engine with {flags}, or correct {subject.at('model')}"
        case EngineKind.TRITON:
            rest = name.removeprefix(base or "")
            separator = rest[: rest.rfind("_") + 1] or "_lora_"
            flags = f"--lora-separator {separator}"
            where = f"the adapter in {base or 'MODEL'}/1/multi_lora.json"
            return f"start the engine with {flags}, and list {where}, or correct {subject.at('model')}"
        case EngineKind.TRTLLM:
            return None


class Context:
    """The context is as long as the file promises."""

    name = "context"

    def asks(self, subject: Subject) -> Sequence[Question]:
        """The list of models, which says it on vLLM. Other engines would have to be filled to find out."""
        return (listing(subject.site),)

    def judge(self, subject: Subject, answers: Answers) -> Iterable[Finding]:
        """Less than is promised."""
        promised = subject.settings.context
        if promised is None:
            return
        known = next((one for one in listed(subject, answers) if one.id == subject.model), None)
        if known is None or known.max_model_len is None or known.max_model_len >= promised:
            return
        evidence = f"the file promises a context of {promised} tokens, and the engine has {known.max_model_len}"
        fix = f"{subject.at('context')}: {known.max_model_len}, or start the engine with --max-model-len {promised}"
        yield of_model(Level.ERROR, subject, self.name, evidence, fix)
