# ruff: noqa: E501 - whole messages are compared
"""Warnings about what can be served and is probably not meant, each at its place."""

from collections.abc import Callable

import pytest
from hypothesis import given
from pydantic import BaseModel

from engines.naming import task_of_name
from gateway.settings import Loaded, Settings
from gateway.settings.advice import advise
from gateway.settings.problems import Level
from tests.support.json_type import Json
from tests.support.settings_edits import trees

HEAD = "engines: {v: {kind: vllm, urls: [http://v]}, t: {kind: trtllm, urls: [http://t]}}\n"
"""Two engines; a test's models stand below, so that their line is 2."""

CASES = {
    "an engine that no model uses": (
        HEAD + "models: {m: {engine: v}}",
        ["1:46: warning: engines.t: no model uses this engine (leave it out, or name it in a model)"],
    ),
    "two engines at one address": (
        "engines: {a: {kind: vllm, urls: [http://h]}, b: {kind: vllm, urls: [http://h/]}}",
        [
            (
                "1:69: warning: engines.b.urls[0]: the same address as engines.a.urls[0]: its load and its limits are "
                "counted apart (use one engine for both)"
            )
        ],
    ),
    "a list of keys without a key": (
        HEAD + "keys: []",
        [
            (
                "2:1: warning: keys: has no key, so that nobody is let in (turnout keys new NAME makes one; without keys and "
                "keys_file none is asked for)"
            )
        ],
    ),
    "a key for no model": (
        HEAD + f'keys: [{{name: a, hash: "sha256:{"0" * 64}", models: []}}]',
        [
            "2:99: warning: keys[0].models: is empty: this key may ask for nothing (name models, or leave it out for all)"
        ],
    ),
    "an engine where the gateway itself listens": (
        "engines: {v: {kind: vllm, urls: [http://localhost:8080/]}}",
        [
            (
                "1:34: warning: engines.v.urls[0]: is where this gateway itself listens (server.port: 8080) (give one of "
                "the two another port)"
            )
        ],
    ),
    "a second request where there is one replica": (
        HEAD + "models: {m: {engine: v, hedge: p95}, n: {engine: t}}",
        ["2:25: warning: models.m.hedge: has no effect: there is one replica only (leave it out)"],
    ),
    "connections kept longer than vLLM keeps them": (
        "engines: {v: {kind: vllm, urls: [http://h], keep_alive: 30s}}",
        [
            (
                "1:57: warning: engines.v.keep_alive: vLLM closes idle connections after 5s: requests will meet ones that "
                "are just closing (leave it out, or start vLLM with VLLM_HTTP_TIMEOUT_KEEP_ALIVE=30)"
            )
        ],
    ),
    "connections kept longer than Triton keeps them": (
        "engines: {v: {kind: triton, urls: [http://h], keep_alive: 6}}",
        [
            (
                "1:59: warning: engines.v.keep_alive: Triton closes idle connections after 5s: requests will meet ones "
                "that are just closing (leave it out, or 5s at most)"
            )
        ],
    ),
    "names that differ in capitals only": (
        HEAD + "models: {gpt: {engine: v, aliases: [Gpt]}, GPT: {engine: t}}",
        [
            (
                '2:44: warning: models.GPT: differs from "gpt", which stands for another model, in capitals only (choose '
                "names that cannot be mistaken)"
            )
        ],
    ),
    "an alias that is another model's name on its engine": (
        HEAD + "models: {small: {engine: v, aliases: [org/big]}, big: {engine: t, model: org/big}}",
        [
            (
                "2:39: warning: models.small.aliases[0]: t calls the model behind big so, and whoever asks for it "
                "gets small (move it to models.big, or choose another)"
            )
        ],
    ),
    "tools that nobody reads": (
        "engines: {v: {kind: vllm, urls: [http://v], parser: none}}\nmodels: {m: {engine: v, tools: {parse: engine}}}",
        [
            (
                "2:40: warning: models.m.tools.parse: tool calls are read by nobody: v has no tool parser (parser: none) "
                "(parse: auto, or parse: gateway)"
            )
        ],
    ),
    "a parser for another format than the model's": (
        (
            "engines: {v: {kind: vllm, urls: [http://v], parser: hermes}}\n"
            "models: {m: {engine: v, tools: {parse: engine, format: llama3_json}}}"
        ),
        [
            (
                "2:56: warning: models.m.tools.format: v reads calls as hermes (hermes), and the model writes llama3_json "
                "(parse: gateway, or another parser)"
            )
        ],
    ),
    "embeddings on a chat engine": (
        HEAD + "models: {c: {targets: [{engine: v}, {engine: t}]}, e: {task: embedding, targets: [{engine: v}]}}",
        [
            (
                "2:92: warning: models.e.targets[0].engine: v also serves c for chat, and a vLLM server has one or the "
                "other (give the embedding model an engine of its own)"
            )
        ],
    ),
    "an embedding model for chat": (
        "engines: {v: {kind: vllm, urls: [http://v]}}\nmodels: {m: {engine: v, model: BAAI/bge-m3}}",
        [
            (
                '2:10: warning: models.m: by its name, "BAAI/bge-m3" makes embeddings, and this model is for chat '
                "(task: embedding)"
            )
        ],
    ),
    "a limit of the model above those of its engines": (
        (
            "engines: {v: {kind: vllm, urls: [http://a, http://b], max_in_flight: 8}}\n"
            "models: {m: {engine: v, max_in_flight: 20}}"
        ),
        [
            (
                "2:40: warning: models.m.max_in_flight: is never reached: its engines take 16 requests in all (lower it, "
                "or leave it out)"
            )
        ],
    ),
    "keys without effect": (
        (
            "engines: {v: {kind: vllm, urls: [http://v], guided_decoding: true, api_key_header: k}}\n"
            "models:\n"
            "  m: {engine: v, fallback_on: [overload], token_inputs: pass, affinity: {factor: 2}}\n"
            "admission: {queue: 5}"
        ),
        [
            "1:45: warning: engines.v.guided_decoding: has no effect: it is for trtllm, and v is vllm (leave it out)",
            "1:68: warning: engines.v.api_key_header: has no effect: there is no api_key (leave it out)",
            "3:18: warning: models.m.fallback_on: has no effect: there are no fallbacks (leave it out)",
            "3:43: warning: models.m.token_inputs: has no effect: it is for embedding models (leave it out)",
            (
                "3:74: warning: models.m.affinity.factor: has no effect: policy least_requests does not look at it (leave "
                "it out)"
            ),
            (
                "4:1: warning: admission: has no effect: nothing is limited, so nobody waits (set max_in_flight of an "
                "engine or a model)"
            ),
        ],
    ),
    "tools of a model that does not chat": (
        "engines: {v: {kind: vllm, urls: [http://v]}}\nmodels: {m: {engine: v, task: rerank, tools: {format: hermes}}}",
        ["2:39: warning: models.m.tools: has no effect: it is for chat models (leave it out)"],
    ),
    "every page may call": (
        'server: {cors_origins: ["*"]}\nengines: {v: {kind: vllm, urls: [http://v]}}',
        [
            (
                "1:25: warning: server.cors_origins[0]: any web page that somebody opens may call the models (name the "
                "pages that may)"
            )
        ],
    ),
    "phases longer than the whole": (
        "engines: {v: {kind: vllm, urls: [http://v], timeouts: {first_token: 20m, total: 10m, idle: 30s}}}",
        [
            (
                "1:69: warning: engines.v.timeouts.first_token: longer than total (10m), so that first_token never runs "
                "out (first_token below total)"
            )
        ],
    ),
    "a whole shorter than a default": (
        "engines: {v: {kind: vllm, urls: [http://v]}}\nmodels: {m: {engine: v, timeouts: {total: 45s, idle: 9s}}}",
        [
            (
                "2:43: warning: models.m.timeouts.total: shorter than first_token (60s), so that first_token never runs "
                "out (first_token below total)"
            )
        ],
    ),
    "waiting longer than anything may take": (
        (
            "engines: {v: {kind: vllm, urls: [http://v], max_in_flight: 1, timeouts: {total: 2m}}}\n"
            "models: {m: {engine: v}}\nadmission: {wait: 5m}"
        ),
        [
            (
                "3:19: warning: admission.wait: a request would wait longer than it may take in all (total: 2m) (wait "
                "below every total)"
            )
        ],
    ),
    "signs of life that come too late": (
        "server: {heartbeat: 2m}\nengines: {v: {kind: vllm, urls: [http://v]}}",
        [
            (
                "1:21: warning: server.heartbeat: no sign of life is ever sent: the first token may take 60s at most "
                "(make it shorter than first_token)"
            )
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_says_what_where_and_what_to_do(case: str, read: Callable[..., Loaded]) -> None:
    text, expected = CASES[case]
    loaded = read(text)
    assert [str(problem).partition("turnout.yaml:")[2] for problem in loaded.warnings] == expected
    assert all(problem.level is Level.WARNING and problem.rule for problem in loaded.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "models: {m: {engine: v, aliases: [M, gpt-4o]}, n: {engine: t, model: gpt-x}}",
        "models: {m: {engine: v, tools: {parse: engine, format: hermes}}, n: {engine: t}}",
        "models: {e: {engine: v, task: embedding, model: bge-m3}, r: {engine: v, task: rerank}, c: {engine: t}}",
        "models: {m: {targets: [{engine: v}, {engine: t}], timeouts: {first_token: 5m, idle: 2m, total: 1h}}}",
        (
            "models: {m: {engine: v, policy: session_affinity, affinity: {by: [user]}}, n: {engine: t, max_in_flight: 3}}\n"
            "admission: {wait: 20s}"
        ),
        "retry: {attempts: 2}",
    ],
)
def test_what_is_sound_gets_no_warning(text: str, read: Callable[..., Loaded]) -> None:
    assert read(HEAD + text).warnings == ()


def test_a_warning_about_a_value_from_the_environment_names_the_variable(read: Callable[..., Loaded]) -> None:
    loaded = read("engines: {v: {kind: vllm, urls: [http://v]}}", {"TURNOUT_ENGINES__V__KEEP_ALIVE": "1m"})
    assert str(loaded.warnings[0]).startswith("TURNOUT_ENGINES__V__KEEP_ALIVE: warning: engines.v.keep_alive: vLLM")


@given(trees())
def test_each_warning_is_about_a_key_that_exists(settings: Settings) -> None:
    for finding in advise(settings):
        found: Json = settings
        for part in finding.path:
            found = getattr(found, part) if isinstance(found, BaseModel) and isinstance(part, str) else found[part]
        assert finding.message
        assert finding.suggestion
        assert finding.rule


@pytest.mark.parametrize(
    ("model", "task"),
    [
        ("BAAI/bge-m3", "embedding"),
        ("BAAI/bge-reranker-v2-m3", "rerank"),
        ("sentence-transformers/all-MiniLM-L6-v2", "embedding"),
        ("intfloat/e5-mistral-7b-instruct", "embedding"),
        ("Alibaba-NLP/gte-Qwen2-7B-instruct", "embedding"),
        ("Qwen/Qwen3-Embedding-8B", "embedding"),
        ("Qwen/Qwen3-Reranker-8B", "rerank"),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", "rerank"),
        ("text-embedding-3-small", "embedding"),
        ("Qwen/Qwen2.5-1.5B-Instruct", None),
        ("meta-llama/Llama-3.1-8B-Instruct", None),
        ("deepseek-ai/DeepSeek-V3", None),
        ("ensemble", None),
        ("gpt-oss-120b", None),
    ],
)
def test_a_name_hints_at_a_task(model: str, task: str | None) -> None:
    assert task_of_name(model) == task
