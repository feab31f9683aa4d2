"""What each engine kind can do, as plain values: the profiles for machines and documents to read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, assert_never

from engines.faults import FaultRule
from engines.habits import HABITS
from engines.policy import Drop, Emulate, Pass, Policy, Reject, Rename, Table, Translate
from engines.profile import Operation, Profile, Variant
from engines.registry import PROFILES

Plain: TypeAlias = dict[str, Any]
"""A JSON object."""

OPENAI: Final[Mapping[Operation, tuple[str, ...]]] = {
    Operation.CHAT: (
        *("messages", "max_completion_tokens", "max_tokens", "temperature", "top_p", "n", "stop", "seed"),
        *("frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs"),
        *("stream", "stream_options", "response_format", "tools", "tool_choice", "parallel_tool_calls"),
        *("functions", "function_call", "reasoning_effort", "verbosity", "user", "metadata", "store"),
        *("service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
        *("prediction", "modalities", "audio", "web_search_options", "moderation"),
    ),
    Operation.COMPLETIONS: (
        *("prompt", "max_tokens", "temperature", "top_p", "n", "best_of", "stop", "seed", "suffix", "echo"),
        *("frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "stream", "stream_options", "user"),
    ),
    Operation.EMBEDDINGS: ("input", "encoding_format", "dimensions", "user"),
}
"""OpenAI's parameters beside `model`, in the order of documents; all others are some engine's own."""


def capabilities() -> list[Plain]:
    """Everything that the profiles say, one entry per engine kind."""
    return [capabilities_of(profile) for profile in PROFILES.values()]


def policy_of(policy: Policy) -> Plain:
    """A policy in words: `policy`, `note`, and what else belongs to it."""
    match policy:
        case Pass():
            return {"policy": "pass", "note": policy.note}
        case Rename():
            return {"policy": "rename", "note": policy.reason, "to": policy.to}
        case Drop():
            return {"policy": "drop", "note": policy.reason, "untold": _values(policy.silent)}
        case Reject():
            return {"policy": "reject", "note": policy.reason, "unless": _values(policy.neutral)}
        case Translate():
            return {"policy": "translate", "note": policy.reason}
        case Emulate():
            return {"policy": "emulate", "note": policy.reason}
        case _:
            assert_never(policy)


def parameters(table: Table) -> Iterator[tuple[str, Plain]]:
    """Each parameter of a table with its policy in words, by name."""
    for name in sorted(table.policies):
        yield name, policy_of(table.policies[name])


def changed(table: Table, usual: Table) -> Iterator[tuple[str, Plain]]:
    """The parameters that are treated otherwise than usual."""
    for name, policy in parameters(table):
        if table.policies[name] != usual.policies.get(name):
            yield name, policy


def _values(raw: tuple[bytes, ...]) -> list[str]:
    return [value.decode() for value in raw]


def capabilities_of(profile: Profile) -> Plain:
    """Everything that one profile says, perhaps that of a running engine with its variants in force."""
    return {
        "kind": profile.kind.value,
        "title": profile.title,
        "operations": {operation.value: _operation(profile, operation) for operation in profile.paths},
        "variants": [_variant(profile, variant) for variant in profile.variants],
        "probes": {
            "health": profile.health.path,
            "ready": sorted(profile.health.ready),
            "not_ready": sorted(profile.health.not_ready),
            "models": profile.models_path,
            "version": profile.version_path,
            "metrics": profile.metrics_path,
            "keep_alive_seconds": profile.keep_alive,
        },
        "errors": [_rule(rule) for rule in profile.fault_rules],
        "habits": [
            {"topic": topic, "what": habit.what, "treatment": habit.treatment.value, "how": habit.how}
            | {"tests": list(habit.tests)}
            for topic, habits in HABITS.items()
            for habit in habits
            if profile.kind in habit.engines
        ],
    }


def _operation(profile: Profile, operation: Operation) -> Plain:
    table = profile.tables.get(operation)
    said: Plain = {"path": profile.paths[operation].decode()}
    if table is None:
        return said | {"parameters": None}
    defaults = [
        {"name": default.name, "value": default.value.decode(), "reason": default.reason} for default in table.defaults
    ]
    return said | {"parameters": dict(parameters(table)), "defaults": defaults, "nulls_left_out": table.remove_nulls}


def _variant(profile: Profile, variant: Variant) -> Plain:
    return {
        "title": variant.title,
        "since": ".".join(map(str, variant.since)) or None,
        "before": ".".join(map(str, variant.before)) or None,
        "rust_frontend": variant.rust_frontend,
        "unguided": variant.unguided,
        "lacks": sorted(operation.value for operation in variant.lacks),
        "parameters": {
            operation.value: dict(changed(table, profile.tables[operation]))
            for operation, table in variant.tables.items()
        },
    }


def _rule(rule: FaultRule) -> Plain:
    return {
        "pattern": rule.pattern.pattern,
        "statuses": list(rule.statuses),
        "kind": rule.kind.value,
        "message": rule.message,
        "param": rule.param,
    }
