"""Every kind of mistake: exactly where it is, what was expected, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings import ConfigErrors, Loaded, load
from gateway.settings.document import read_document

Wrong = Callable[..., list[str]]
Read = Callable[..., Loaded]

ENGINES = "engines: {qwen: {kind: vllm, urls: [http://h:1]}, llama: {kind: trtllm, urls: [http://h:2]}}\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("server: {prot: 1}", '1:10: server.prot: unknown key (did you mean "port"?)'),
        ("sever: {}", '1:1: sever: unknown key (did you mean "server"?)'),
        ("port: 1", "1:1: port: unknown key (it belongs at server.port)"),
        (
            "retry: {zzz: 1}",
            "1:9: retry.zzz: unknown key (known here: attempts, budget, on_timeout)",
        ),
        (
            "server: {port: 80x}",
            '1:16: server.port: expected a whole number, not "80x" (for example port: 8080)',
        ),
        (
            "server: {port: 70000}",
            '1:16: server.port: expected a whole number from 0 to 65535, not "70000" (for example port: 8080)',
        ),
        ("server: {port: true}", '1:16: server.port: expected a whole number, not "true" (for example port: 8080)'),
        ("server: {port: [1]}", "1:16: server.port: expected a whole number (for example port: 8080)"),
        ("server: []", "1:9: server: expected a mapping of keys and values"),
        ("server: {host: 7}", '1:16: server.host: expected text, not "7" (put it in quotes)'),
        ("server: {drain: soon}", "1:17: server.drain: expected a duration such as 500ms, 10s, 15m or 1h (a bare"),
        ("server: {keep_alive: 0}", '1:22: server.keep_alive: expected a duration above 0, not "0"'),
        (
            "server: {max_body: 64 MoB}",
            "1:20: server.max_body: expected a size such as 64MiB, 1GB or a whole number of",
        ),
        ("server: {max_body: 0}", '1:20: server.max_body: expected a size above 0, not "0"'),
        (
            "server: {access_log: maybe}",
            '1:22: server.access_log: expected true or false, not "maybe" (for example access_log: true)',
        ),
        (
            "server: {cors_origins: x}",
            '1:24: server.cors_origins: expected a list, not "x" (for example cors_origins: [https://chat.example.org])',
        ),
        (
            "server: {cors_origins: [https://a/b]}",
            "1:25: server.cors_origins[0]: expected an origin such as https://chat.example.org, or * (scheme, host and",
        ),
        ("retry: {budget: 120%}", '1:17: retry.budget: expected a share from 0% to 100%, such as 20%, not "120%"'),
        ("admission: {queue: -1}", '1:20: admission.queue: expected a whole number of at least 0, not "-1"'),
        ("retry: {attempts: 0}", '1:19: retry.attempts: expected a whole number of at least 1, not "0"'),
    ],
)
def test_a_wrong_key_or_value_is_pointed_at(line: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"{line}\n{ENGINES}")
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


@pytest.mark.parametrize(
    ("engine", "problem"),
    [
        ("{urls: [http://h:1]}", "2:3: engines.q.kind: is required"),
        ("{kind: vllm}", "2:3: engines.q.urls: is required (for example urls: [http://127.0.0.1:8000])"),
        ("{kind: vllm, urls: []}", "2:25: engines.q.urls: expected at least one entry (for example urls: ["),
        ("{kind: vllm, urls: http://h:1}", "2:25: engines.q.urls: expected a list (for example urls: ["),
        (
            "{kind: vlm, urls: [http://h:1]}",
            '2:13: engines.q.kind: expected one of vllm, trtllm, triton, not "vlm" (did you mean "vllm"?)',
        ),
        (
            "{kind: vllm, urls: [h:1]}",
            "2:26: engines.q.urls[0]: expected a URL with http:// or https://, such as",
        ),
        ("{kind: vllm, urls: [ftp://h:1]}", "2:26: engines.q.urls[0]: expected a URL with http:// or https://"),
        ("{kind: vllm, urls: ['http://:1']}", "2:26: engines.q.urls[0]: expected a URL with a valid host and port"),
        ("{kind: vllm, urls: ['http://h:99999']}", "2:26: engines.q.urls[0]: expected a URL with a valid host and"),
        ("{kind: vllm, urls: ['http://h:0']}", "2:26: engines.q.urls[0]: expected a URL with a valid host and port"),
        ("{kind: vllm, urls: ['http://h x:1']}", "2:26: engines.q.urls[0]: expected a URL with a valid host"),
        ("{kind: vllm, urls: ['http://[::1:1']}", "2:26: engines.q.urls[0]: expected a URL with a valid host"),
        ("{kind: vllm, urls: ['http://h:1/a b']}", "2:26: engines.q.urls[0]: expected a URL without blanks"),
        ("{kind: vllm, urls: ['http://u:p@h:1']}", "2:26: engines.q.urls[0]: a URL must not hold credentials (use"),
        ("{kind: vllm, urls: ['http://h:1?x=1']}", "2:26: engines.q.urls[0]: a base URL has no query and no fragment"),
        ("{kind: vllm, urls: [http://h:1/v1/]}", "2:26: engines.q.urls[0]: a base URL ends before /v1, which is added"),
        (
            "{kind: vllm, urls: [http://h:1, http://h:2, http://h:1/]}",
            "2:50: engines.q.urls[2]: the same address as urls[0] (list each replica once)",
        ),
        (
            "{kind: vllm, urls: [http://h:1], max_in_flight: 0}",
            '2:54: engines.q.max_in_flight: expected a whole number of at least 1, not "0"',
        ),
        (
            "{kind: vllm, urls: [http://h:1], api_key: '${NO_KEY}'}",
            "2:48: engines.q.api_key: environment variable NO_KEY is not set and has no default (set it, or give a",
        ),
        ("{kind: vllm, urls: ['${NO_URL}']}", "2:26: engines.q.urls[0]: environment variable NO_URL is not set"),
        (
            "{kind: vllm, urls: [http://h:1], embeddings: true}",
            "2:51: engines.q.embeddings: is for triton engines; every vllm engine may serve embeddings (leave it out)",
        ),
        (
            "{kind: trtllm, urls: [http://h:1], embeddings: true}",
            "2:53: engines.q.embeddings: trtllm-serve has no embeddings (leave it out, and use a vllm engine for them)",
        ),
        (
            "{kind: triton, urls: [http://h:1], api_key: k, api_key_header: Host}",
            "2:69: engines.q.api_key_header: the gateway itself sends this header to engines",
        ),
        (
            "{kind: triton, urls: [http://h:1], max_batch: 5}",
            "2:52: engines.q.max_batch: is for vllm engines; triton takes one input at a time anyway (leave it out)",
        ),
        ("{kind: vllm, urls: [http://h:1], max_batch: 0}", "2:50: engines.q.max_batch: "),
        (
            '{kind: vllm, urls: [http://h:1], api_key: "${BAD"}',
            "2:48: engines.q.api_key: a reference without its }: expected ${NAME} or ${NAME:-default} (write $${",
        ),
        (
            "{kind: vllm, urls: [http://h:1], api_key: 'file:here'}",
            "2:48: engines.q.api_key: a secret file needs an absolute path",
        ),
        (
            "{kind: vllm, urls: [http://h:1], api_key: 'file:/away/key'}",
            "2:48: engines.q.api_key: cannot read the secret file /away/key: No such file or directory",
        ),
        ("{kind: vllm, urls: [http://h:1], api_key: 17}", "2:48: engines.q.api_key: expected text (put it in quotes)"),
        (
            "{kind: vllm, urls: [http://h:1], timeouts: {first: 1s}}",
            '2:50: engines.q.timeouts.first: unknown key (did you mean "first_token"?)',
        ),
        ("{kind: vllm, urls: [http://h:1], health: {path: x}}", "2:54: engines.q.health.path: expected a path that"),
    ],
)
def test_a_mistake_in_an_engine_is_pointed_at(engine: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"engines:\n  q: {engine}\n")
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


def test_an_engine_has_a_name_that_fits_into_a_header(wrong: Wrong) -> None:
    found = wrong('engines: {"my engine": {kind: vllm, urls: [http://h:1]}}')
    assert len(found) == 1
    assert found[0].startswith('turnout.yaml:1:11: engines."my engine": an engine\'s name has letters, digits, dots')


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("{}", "3:3: models.m: needs an engine (engine: NAME, or targets: [{engine: NAME}, …])"),
        ("", "3:3: models.m: needs an engine (engine: NAME, or targets: [{engine: NAME}, …])"),
        ("{targets: []}", "3:3: models.m: needs an engine (engine: NAME, or targets: [{engine: NAME}, …])"),
        ("{engine: qwn}", '3:15: models.m.engine: no engine has this name: "qwn" (did you mean "qwen"?)'),
        ("{engine: zzz}", '3:15: models.m.engine: no engine has this name: "zzz" (engines: qwen, llama)'),
        (
            "{targets: [{engine: qwen}, {engine: lama}]}",
            '3:42: models.m.targets[1].engine: no engine has this name: "lama" (did you mean "llama"?)',
        ),
        ("{targets: [{weight: 2}]}", "3:17: models.m.targets[0].engine: is required (for example engine: qwen)"),
        (
            "{targets: [{engine: qwen, weight: 0}]}",
            '3:40: models.m.targets[0].weight: expected a number above 0, not "0"',
        ),
        (
            "{engine: qwen, targets: [{engine: llama}]}",
            "3:21: models.m.targets: engine and targets exclude each other (keep one of the two)",
        ),
        (
            "{targets: [{engine: qwen}, {engine: qwen}]}",
            "3:33: models.m.targets[1]: the same engine and model as targets[0] (give one of them the sum of the",
        ),
        (
            "{engine: llama, task: embedding}",
            "3:15: models.m.engine: embeddings need a vllm engine, and llama is trtllm (engines with embeddings: qwen)",
        ),
        (
            "{task: embedding, targets: [{engine: qwen}, {engine: llama}]}",
            "3:59: models.m.targets[1].engine: embeddings need a vllm engine, and llama is trtllm",
        ),
        (
            "{engine: llama, task: rerank}",
            "3:15: models.m.engine: rerank models need a vllm engine, and llama is trtllm (vllm engines: qwen)",
        ),
        (
            "{engine: qwen, policy: fastest}",
            "3:29: models.m.policy: expected one of round_robin, weighted, least_requests, power_of_two, prefix_affin",
        ),
        (
            "{engine: qwen, task: embeddings}",
            '3:27: models.m.task: expected one of chat, embedding, rerank, not "embeddings" (did you mean',
        ),
        ("{engine: qwen, fallbacks: [m]}", "3:33: models.m.fallbacks[0]: a model cannot stand in for itself"),
        (
            "{engine: qwen, fallbacks: [n, o]}",
            '3:36: models.m.fallbacks[1]: no model has this name: "o" (models: m, n)',
        ),
        (
            "{engine: qwen, fallback_on: [overlode]}",
            '3:35: models.m.fallback_on[0]: expected one of overload, engine_loss, context_length, not "overlode" (did',
        ),
        ("{engine: qwen, task: embedding, fallbacks: [n]}", "3:50: models.m.fallbacks[0]: n is for another task"),
        (
            "{engine: qwen, affinity: {factor: 0.5}}",
            '3:40: models.m.affinity.factor: expected a number of at least 1, not "0.5"',
        ),
        (
            "{engine: qwen, affinity: {header: 'x y'}}",
            "3:40: models.m.affinity.header: expected the name of a header, such as x-session-id",
        ),
        (
            "{engine: qwen, affinity: {by: [cookie]}}",
            '3:37: models.m.affinity.by[0]: expected one of header, prompt_cache_key, user, not "cookie"',
        ),
        (
            "{engine: qwen, timeouts: {connect: 1s}}",
            "3:32: models.m.timeouts.connect: unknown key (it belongs at engines.NAME.timeouts.connect)",
        ),
        ("{engine: qwen, aliases: [m]}", "3:31: models.m.aliases[0]: an alias equal to the model's own name"),
        ("{engine: qwen, aliases: [n]}", '3:31: models.m.aliases[0]: a model already has this name: "n" (choose'),
        ("{engine: qwen, aliases: [a, a]}", "3:34: models.m.aliases[1]: is already an alias at models.m.aliases[0]"),
        ("{engine: qwen, aliases: [7]}", '3:31: models.m.aliases[0]: expected text, not "7" (put it in quotes)'),
    ],
)
def test_a_mistake_in_a_model_is_pointed_at(model: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"{ENGINES}models:\n  m: {model}\n  n: {{engine: qwen}}\n")
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


def test_an_alias_may_belong_to_one_model_only(wrong: Wrong) -> None:
    found = wrong(f"{ENGINES}models: {{a: {{engine: qwen, aliases: [x]}}, b: {{engine: qwen, aliases: [x]}}}}")
    assert found == [
        "turnout.yaml:2:71: models.b.aliases[0]: is already an alias at models.a.aliases[0] (keep one of the two)"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("models: {m: {engine: qwen, shadow: {}}}", "1:28: models.m.shadow: not supported yet"),
    ],
)
def test_what_this_version_does_not_do_is_refused(text: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"{text}\n{ENGINES}")
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("engine: q, tools: {format: hermez}", "tools.format: expected auto, or a name that an engine has for it"),
        ("engine: q, tools: {format: qwen3-codr}", "(did you mean qwen3_coder"),
        ("engine: q, tools: {parse: gatway}", 'tools.parse: expected one of auto, engine, gateway, off, not "gatway"'),
        ("engine: q, tools: {parser: hermes}", "tools.parser: unknown key"),
        ("engine: q, reasoning: {format: deepsek_r1}", "(did you mean deepseek_r1"),
        ("engine: q, reasoning: {opened: perhaps}", "reasoning.opened: expected true or false"),
    ],
)
def test_names_of_formats_are_known_to_somebody(line: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"engines: {{q: {{kind: vllm, urls: [http://h:1], parser: none}}}}\nmodels: {{m: {{{line}}}}}")
    assert len(found) == 1
    assert problem in found[0]


def test_any_engines_name_for_a_parser_is_taken(read: Read) -> None:
    text = (
        "engines:\n"
        "  a: {kind: vllm, urls: [http://h:1], parser: qwen3_coder}\n"
        "  b: {kind: trtllm, urls: [http://h:2], parser: glm4}\n"
        "  c: {kind: triton, urls: [http://h:3], parser: none}\n"
        "models: {m: {engine: a, tools: {format: minimax-m2, parse: off}, reasoning: {format: off}}}\n"
    )
    settings = read(text).settings
    assert [engine.parser for engine in settings.engines.values()] == ["qwen3_coder", "glm4", "none"]
    assert settings.models["m"].tools.format == "minimax-m2"
    assert (settings.models["m"].tools.parse, settings.models["m"].reasoning.format) == ("off", "off")


def test_embeddings_on_triton_are_declared(wrong: Wrong) -> None:
    found = wrong(
        "engines: {t: {kind: triton, urls: [http://h:1]}, u: {kind: triton, urls: [http://h:2], embeddings: true}}\n"
        "models: {m: {engine: t, task: embedding}, n: {engine: u, task: embedding}}"
    )
    (problem,) = found
    assert problem == (
        "turnout.yaml:2:22: models.m.engine: embeddings need a vllm engine, and t is triton "
        "(engines.t.embeddings: true, if its models run on Triton's vLLM backend)"
    )


def test_a_url_for_several_addresses_is_checked_like_any_other(wrong: Wrong) -> None:
    found = wrong("engines: {q: {kind: vllm, urls: [http://h:1, dns+http://h:1/v1]}}")
    assert len(found) == 1
    assert found[0].startswith("turnout.yaml:1:46: engines.q.urls[1]: a base URL ends before /v1, which is added to it")


def test_everything_is_reported_at_once_in_the_order_of_the_file(wrong: Wrong) -> None:
    found = wrong(
        """
        server:
          prot: 8080
          drain: soon
        engines:
          qwen:
            kind: vlm
            urls: [127.0.0.1:8000, http://h:1]
            api_key: ${QWEN_KEY}
          qwen: {kind: vllm}
        models:
          chat: {engine: qwn, aliases: [gpt]}
          other: {engine: qwen, aliases: [gpt, 1]}
          none: {policy: fastest}
        keys: [1]
        """,
        {"TURNOUT_SERVER__PORT": "x"},
    )
    assert [line.rpartition(": ")[0].split(": ")[0] + " " + line.split(": ")[1] for line in found] == [
        "turnout.yaml:2:3 server.prot",
        "turnout.yaml:3:10 server.drain",
        "turnout.yaml:6:11 engines.qwen.kind",
        "turnout.yaml:7:12 engines.qwen.urls[0]",
        "turnout.yaml:8:14 engines.qwen.api_key",
        "turnout.yaml:9:3 engines.qwen",
        "turnout.yaml:11:18 models.chat.engine",
        "turnout.yaml:12:35 models.other.aliases[0]",
        "turnout.yaml:12:40 models.other.aliases[1]",
        "turnout.yaml:13:3 models.none",
        "turnout.yaml:13:18 models.none.policy",
        "turnout.yaml:14:8 keys[0]",
        "TURNOUT_SERVER__PORT server.port",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: the file is empty"),
        ("# only a comment\n", "1:1: the file is empty"),
        ("- engines", "1:1: expected a mapping with engines and models"),
        ("just text", "1:1: expected a mapping with engines and models"),
        ("server: {}", "1:1: engines: at least one engine is needed"),
        ("engines: {}", "1:10: engines: at least one engine is needed"),
        (
            "engines:\n\tq: 1",
            "2:1: not YAML: while scanning for the next token, found character '\\t' that cannot start",
        ),
        ('engines:\n  q: "\\U00110000"', "2:7: not YAML: an escape names no character"),
        ("%YAML 9.9\n---\nengines: {}", "1:1: not YAML: found incompatible YAML document"),
        ("%YAML 1.5\n---\nengines: {}", "1:1: not YAML: the YAML version is not known"),
        ("---\n%YAML 9.9\n---\nengines: {}", "1:1: not YAML: the YAML version is not known"),
        ("[" * 3000, "1:1: nested too deeply"),
        ("engines: [", "1:11: not YAML: while parsing a flow node"),
        ("engines: {q: {api_key: ${KEY}}}", "1:25: not YAML: while parsing a flow mapping, expected ',' or '}'"),
        ("a: 1\n---\nb: 2", "2:1: not YAML: expected a single document in the stream, but found another document"),
        ("engines: *q", "1:10: not YAML: found undefined alias 'q'"),
        ("engines: 1\nserver: \x07", "2:9: not YAML: the character U+0007 is not allowed"),
    ],
)
def test_a_file_that_is_no_configuration_is_pointed_at(text: str, problem: str, wrong: Wrong) -> None:
    found = wrong(text)
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


def test_a_reference_without_quotes_in_a_flow_mapping_is_explained(wrong: Wrong) -> None:
    (found,) = wrong("engines: {q: {api_key: ${KEY}}}")
    assert found.endswith("(inside [ ] and { }, put ${…} in quotes)")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("server: !mine {}", "1:9: server: YAML tags have no meaning here"),
        ("server: !!python/object/apply:os.system [id]", "1:9: server: YAML tags have no meaning here"),
        ("server: !!int [x]", "1:9: server: YAML tags have no meaning here"),
        ("server: !mine x", "1:9: server: YAML tags have no meaning here"),
        ("server: &s {host: *s}", "1:9: server.host: an anchor must not hold itself"),
        ("server: {<<: x}", "1:14: server: << must name another mapping"),
        ("server: {? [a] : 1}", "1:12: server: a key must be a single word"),
        ("server: {port: 1, port: 2}", "1:19: server.port: is given twice; first on line 1 (keep one of the two)"),
    ],
)
def test_yaml_without_meaning_here_is_pointed_at(line: str, problem: str, wrong: Wrong) -> None:
    found = wrong(f"{line}\n{ENGINES}")
    assert len(found) == 1
    assert found[0].startswith(f"turnout.yaml:{problem}")


def test_anchors_that_multiply_without_end_are_refused(wrong: Wrong) -> None:
    lines = ["server: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("repeated without end" in line for line in wrong("\n".join(lines)))


def test_names_with_dots_and_control_characters_are_quoted(wrong: Wrong) -> None:
    found = wrong(f'{ENGINES}models: {{"qwen2.5": {{}}, "\\e[31m": {{engine: qwen}}}}')
    assert [line.split(": ")[1] for line in found] == ['models."qwen2.5"', 'models."\\u001b[31m"']


@pytest.mark.parametrize(
    "text",
    [
        "engines: {q: {kind: vlm, api_key: SECRET, urls: []}}",
        "engines: {q: {kind: vlm, api_kye: SECRET, urls: []}}",
        "engines: {q: {api_key: [SECRET], urls: x}}",
        "engines: {q: {api_key: {SECRET: SECRET}, urls: x}}",
        "engines: {q: {api_key: 'SECRET with blanks'}}",
        "engines:\n  q:\n    api_key:\n      - SECRET\n",
        "engines:\n  q:\n    api_key: |\n      SECRET\n      more\n",
        "engines: {q: {kind: vllm, urls: ['http://me:SECRET@h:1']}}",
        "engines: {q: {kind: vllm, urls: ['ftp://me:SECRET@h:1']}}",
        "engines: {q: {kind: vllm, urls: [], api_key: *SECRET}}",
        "engines: {q: {kind: vllm, api_key: !SECRET!x y}}",
        "engines: {q: {kind: vllm, api_key: @SECRET}}",
        'engines: {q: {kind: vllm, api_key: "SECRET',
        "engines: {q: {api_key: SECRET, api_key: SECRET}}",
        "admin: {token: SECRET}\nserver: {tokn: SECRET}",
        "server: {port: '${HIDDEN}', host: '${HIDDEN} x', cors_origins: ['${HIDDEN}']}",
        "models: {m: {engine: '${HIDDEN}', task: '${HIDDEN}'}}",
        "engines: {q: {kind: '${HIDDEN}', urls: ['http://x:${HIDDEN}@h:1', '${HIDDEN}'], health: {path: '${HIDDEN}'}}}",
    ],
)
def test_no_secret_is_ever_shown(text: str, read: Read) -> None:
    """Neither in a message nor in the lines that go with it, however wrong the file is."""
    environ = {"HIDDEN": "SECRET", "TURNOUT_ENGINES__Q__API_KEY": "SECRET x", "TURNOUT_SERVER__DRAIN": "SECRET"}
    with pytest.raises(ConfigErrors) as caught:
        read(text, environ)
    shown = "\n".join([*map(str, caught.value.problems), *caught.value.lines, repr(caught.value)])
    assert "SECRET" not in shown
    assert caught.value.__cause__ is None


KEYS = ["server", "engines", "models", "port", "urls", "kind", "engine", "targets", "aliases", "q", "api_key", "retry"]
yaml_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text("ab${}:- *&!", max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(tree=st.dictionaries(st.sampled_from(KEYS), yaml_values, max_size=5))
def test_any_tree_is_read_or_refused_with_places(tree: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands where, there is a list of problems inside the file and never another exception."""
    folder: Path = tmp_path_factory.getbasetemp()
    file = folder / "any.yaml"
    file.write_text(json.dumps(tree), encoding="utf-8")
    errors = problems_of(file)
    assert errors is None or errors.problems
    width = len(file.read_text()) + 1
    for problem in errors.problems if errors else ():
        assert problem.line == 1
        assert problem.column is not None
        assert 1 <= problem.column <= width


def problems_of(file: Path) -> ConfigErrors | None:
    try:
        load(file, {})
    except ConfigErrors as errors:
        return errors
    return None


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused_with_places(text: str) -> None:
    document = read_document(text, {})
    for _, position in document.findings:
        assert position.line >= 1
        assert position.column >= 1
