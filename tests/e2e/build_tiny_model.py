"""Builds ``tiny-chat``: a chat model of 1 MB that a real vLLM serves on a processor, with answers known by heart.

    .venvs/vllm/bin/python tests/e2e/build_tiny_model.py FOLDER [--steps 2000] [--seed 0]

The model has Qwen3's architecture and learns a few dialogues in some minutes: plain chat, a story, characters that are
split over tokens, reasoning in ``<think>`` tags, and tool calls in the hermes format (one, several, without arguments,
with nested ones, with escapes, after a text, broken). So vLLM's own parsers see real token streams. Nothing is
downloaded; torch, transformers and tokenizers come with vLLM.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

CONTEXT = 2048
IGNORED = -100
"""The label of tokens that the loss leaves out."""

# Only the names of the tools are rendered: prompts stay short, and the answer does not depend on the schemas.
CHAT_TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role in ['system', 'developer'] %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + tool.function.name }}{%- endfor %}
{{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages and messages[0].role in ['system', 'developer'] %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'user' or (m.role in ['system', 'developer'] and not loop.first) %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- elif m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (m.content or '') }}
{%- for c in (m.tool_calls or []) %}
{%- if not loop.first or m.content %}{{- '\\n' }}{%- endif %}
{%- set f = c.function if c.function else c %}
{{- '<tool_call>\\n{"name": "' + f.name + '", "arguments": ' }}
{{- f.arguments if f.arguments is string else (f.arguments | tojson) }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# In Qwen's tokenizers these are added tokens that are not special: they survive decoding.
MARKERS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
NO_THOUGHT = "<think>\n\n</think>\n\n"

CITIES = ["Paris", "Tokyo", "Berlin", "Lima", "Oslo", "Cairo", "Rome", "Delhi"]
WORDS = (
    "apple river stone cloud music green seven paper window yesterday quickly under between market history number "
    "table answer please explain why what how when where is the a of to in for with"
)
STORY = (
    "Once upon a time a small robot lived on a hill above the sea. Every morning it counted the boats, "
    "and every evening it wrote the number in a blue book. One day no boat came back. The robot lit its "
    "lamp, walked down to the shore, and waited all night. At dawn the boats returned, one by one, and "
    "the robot wrote the number in its book and was happy. The end."
)
EMOJI = (
    "Hi \U0001f44b\U0001f3fd! \u65e5\u672c\u8a9e, \u0440\u0443\u0441\u0441\u043a\u0438\u0439, caf\u00e9, "
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 and \U0001f680."
)
EMAIL_ARGUMENTS = {"to": "ada@example.com", "body": 'Hi "Ada",\nsee C:\\temp \u2014 caf\u00e9 \U0001f680 {ok} </b>'}
EVENT_ARGUMENTS = {
    "title": "Launch",
    "guests": ["Ada", "Bob"],
    "place": {"city": "Oslo", "room": {"floor": 3}},
    "minutes": 45,
    "price": 12.5,
    "private": True,
    "note": None,
}


@dataclass(frozen=True, slots=True)
class Dialogue:
    tools: list[str]
    messages: list[dict[str, Any]]
    answer: str
    """What the model learns to say; the loss is taken on it alone."""


def call(name: str, arguments: object) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'


class Script:
    """The dialogues, with chance deciding on cities, system prompts and further tools."""

    TOOLS = ("get_weather", "get_time", "send_email", "create_event")

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def tools(self, *needed: str) -> list[str]:
        chosen = list(needed) + [tool for tool in self.TOOLS if tool not in needed and self._chance.random() < 0.4]
        self._chance.shuffle(chosen)
        return chosen

    def perhaps_tools(self) -> list[str]:
        return self.tools() if self._chance.random() < 0.4 else []

    def user(self, text: str) -> list[dict[str, Any]]:
        messages = [{"role": "user", "content": text}]
        system = self._chance.choice([None, None, "You are a helpful assistant.", "Be brief."])
        if system:
            role = self._chance.choice(["system", "system", "developer"])
            messages.insert(0, {"role": role, "content": system})
        return messages

    def dialogues(self) -> Iterator[Dialogue]:
        """Every dialogue once."""
        city, other = self._chance.sample(CITIES, 2)
        yield from self.chat(city)
        yield from self.calls(city, other)
        yield self.tool_result(city)

    def chat(self, city: str) -> Iterator[Dialogue]:
        greeting = self._chance.choice(["Hello", "Hello!", "hello", "Hi", "Hi!"])
        thought = "<think>\nThe user asks for 2+2. Two and two make four.\n</think>\n\n2+2 is 4."
        anything = " ".join(self._chance.choices(WORDS.split(), k=self._chance.randint(1, 12)))
        for question, answer in (
            (greeting, "Hello! How can I help you today?"),
            ("Tell me a story.", STORY),
            ("Send me emoji.", EMOJI),
            ("What is 2+2?", "2+2 is 4."),
            ("Think: what is 2+2?", thought),
            (anything, "I am a tiny test model."),
        ):
            yield Dialogue(self.perhaps_tools(), self.user(question), answer)
        yield Dialogue([], self.user("Give me JSON."), '{"name": "Ada", "age": 36}')
        yield Dialogue([], self.user(f"What is the weather in {city}?"), "I cannot check the weather.")

    def calls(self, city: str, other: str) -> Iterator[Dialogue]:
        here, there = call("get_weather", {"city": city}), call("get_weather", {"city": other})
        broken = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par\n</tool_call>'
        for tool, question, answer in (
            *(
                ("get_weather", f"What is the weather in {city}?", here),
                ("get_weather", f"What is the weather in {city} and {other}?", f"{here}\n{there}"),
            )
            * 2,
            ("get_weather", f"Check the weather in {city}.", f"Let me check.\n{here}"),
            ("get_weather", f"Think: weather in {city}?", f"<think>\nI need the weather tool.\n</think>\n\n{here}"),
            ("get_time", "What time is it?", call("get_time", {})),
            ("send_email", "Email Ada.", call("send_email", EMAIL_ARGUMENTS)),
            ("create_event", "Create the launch event.", call("create_event", EVENT_ARGUMENTS)),
            ("get_weather", "Make a broken call.", broken),
            ("get_weather", "Call an unknown tool.", call("no_such_tool", {"x": 1})),
            (
                "get_weather",
                "llama3_json: weather in Paris",
                '{"name": "get_weather", "parameters": {"city": "Paris"}}',
            ),
            ("get_weather", "pythonic: weather in Paris", '[get_weather(city="Paris")]'),
        ):
            yield Dialogue(self.tools(tool), self.user(question), answer)

    def tool_result(self, city: str) -> Dialogue:
        degrees = self._chance.choice(["18", "21", "30"])
        function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
        result = self._chance.choice(["{} degrees", "{} C, sunny", '{{"temp": {}}}']).format(degrees)
        return Dialogue(
            self.tools("get_weather"),
            [
                *self.user(f"What is the weather in {city}?"),
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "x", "type": "function", "function": function}],
                },
                {"role": "tool", "tool_call_id": "x", "content": result},
            ],
            f"It is {degrees} degrees in {city}.",
        )


def build_tokenizer(script: Script, vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer made for the dialogues; emoji stay split over several tokens, as in real models."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    raw.decoder = decoders.ByteLevel()
    corpus = [
        "\n".join([*each.tools, *(str(message["content"]) for message in each.messages), each.answer])
        for _ in range(30)
        for each in script.dialogues()
        if each.answer != EMOJI
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(corpus + WORDS.split(), trainer)
    raw.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in MARKERS])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, hidden: int, layers: int) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        use_cache=False,
    )
    return Qwen3ForCausalLM(config).float()


def prompt_of(tokenizer: PreTrainedTokenizerFast, dialogue: Dialogue) -> str:
    tools = [{"type": "function", "function": {"name": name}} for name in dialogue.tools]
    text = tokenizer.apply_chat_template(
        dialogue.messages, tools=tools or None, add_generation_prompt=True, tokenize=False
    )
    assert isinstance(text, str)
    return text


Example = tuple[list[int], list[int]]


def batches(
    tokenizer: PreTrainedTokenizerFast, script: Script, chance: random.Random, size: int
) -> Iterator[list[Example]]:
    """Batches of examples of like length, in random order, without end: little is padded."""

    def encode(dialogue: Dialogue) -> Example:
        prompt = prompt_of(tokenizer, dialogue)
        if "<think>" not in dialogue.answer and chance.random() < 0.1:
            prompt += NO_THOUGHT
        before = tokenizer.encode(prompt, add_special_tokens=False)
        after = [*tokenizer.encode(dialogue.answer, add_special_tokens=False), tokenizer.eos_token_id]
        return before + after, [IGNORED] * len(before) + after

    while True:
        examples = sorted(
            (encode(each) for _ in range(12) for each in script.dialogues()), key=lambda example: len(example[0])
        )
        pool = [examples[start : start + size] for start in range(0, len(examples), size)]
        chance.shuffle(pool)
        yield from pool


def train(model: Qwen3ForCausalLM, source: Iterator[list[Example]], steps: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    warm = max(1, steps // 20)
    began = time.monotonic()
    for step in range(steps):
        batch = next(source)
        longest = max(len(tokens) for tokens, _ in batch)

        def padded(rows: list[list[int]], filler: int, longest: int = longest) -> torch.Tensor:
            return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])

        cosine = 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))
        for parameters in optimizer.param_groups:
            parameters["lr"] = rate * (step / warm if step < warm else cosine)
        loss = model(
            input_ids=padded([tokens for tokens, _ in batch], 0),
            attention_mask=padded([[1] * len(tokens) for tokens, _ in batch], 0),
            labels=padded([labels for _, labels in batch], IGNORED),
        ).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step} loss {loss.item():.4f} after {time.monotonic() - began:.0f} s", flush=True)


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    model.config.use_cache = True
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    generation = {
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "do_sample": False,
    }
    (folder / "generation_config.json").write_text(json.dumps(generation))


def mistakes(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, script: Script) -> Iterator[str]:
    """The dialogues that the model did not learn."""
    model.eval().float()
    for dialogue in script.dialogues():
        tokens = torch.tensor([tokenizer.encode(prompt_of(tokenizer, dialogue), add_special_tokens=False)])
        with torch.no_grad():
            output = model.generate(
                input_ids=tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=220, do_sample=False
            )
        answer = tokenizer.decode(output[0, tokens.shape[1] :], skip_special_tokens=True)
        if answer != dialogue.answer:
            yield f"{dialogue.messages[-1]['content']!r} -> {answer[:160]!r}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    numbers: dict[str, tuple[Callable[[str], float], float]] = {
        "--steps": (int, 2000),
        "--batch": (int, 16),
        "--vocabulary": (int, 600),
        "--hidden": (int, 128),
        "--layers": (int, 2),
        "--rate": (float, 3e-3),
        "--seed": (int, 0),
        "--threads": (int, 2),
    }
    for name, (kind, default) in numbers.items():
        parser.add_argument(name, type=kind, default=default)
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    torch.manual_seed(chosen.seed)
    torch.set_num_threads(chosen.threads)
    chance = random.Random(chosen.seed)
    script = Script(chance)

    tokenizer = build_tokenizer(script, chosen.vocabulary)
    model = build_model(tokenizer, chosen.hidden, chosen.layers)
    print(f"{sum(part.numel() for part in model.parameters())} parameters, {len(tokenizer)} tokens")
    train(model, batches(tokenizer, script, chance, chosen.batch), chosen.steps, chosen.rate)
    save(model, tokenizer, chosen.folder)
    missed = list(mistakes(model, tokenizer, Script(random.Random(chosen.seed + 1))))
    print(*missed, f"{len(missed)} dialogues not learned", sep="\n")


if __name__ == "__main__":
    main()
