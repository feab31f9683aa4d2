"""Triton's `config.pbtxt`, read by protobuf's own reader of its text format.

The description of the message is built here instead of being taken from tritonclient: lint belongs into continuous
integration, where gRPC and NumPy have no place, and must not answer differently where that extra is installed. It has a
pool of its own, so both can be loaded.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from google.protobuf import json_format, text_format
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pydantic import BaseModel, ConfigDict

from engines.lint.triton_schema import ENUMS, MESSAGES

PACKAGE: Final = "inference"
_SCALARS: Final = {
    name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in ("bool", "double", "float", "int32", "int64", "string", "uint32", "uint64")
}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class InstanceGroup(_Part):
    """How many instances there are, and on what."""

    kind: str = "KIND_AUTO"
    count: int = 0
    gpus: tuple[int, ...] = ()


class QueuePolicy(_Part):
    """What may wait, and how long."""

    max_queue_size: int = 0


class DynamicBatching(_Part):
    """Triton's own way to put requests together."""

    preferred_batch_size: tuple[int, ...] = ()
    max_queue_delay_microseconds: int = 0
    priority_levels: int = 0
    default_priority_level: int = 0
    priority_queue_policy: dict[int, QueuePolicy] = {}


class Specific(_Part):
    """Versions by number."""

    versions: tuple[int, ...] = ()


class VersionPolicy(_Part):
    """Which versions are served."""

    specific: Specific | None = None


class Transaction(_Part):
    """Whether answers may come in pieces."""

    decoupled: bool = False


class Parameter(_Part):
    """A value for the backend."""

    string_value: str = ""


class ModelConfig(_Part):
    """The members of a model's configuration that rules look at."""

    name: str = ""
    backend: str = ""
    platform: str = ""
    runtime: str = ""
    max_batch_size: int = 0
    default_model_filename: str = ""
    instance_group: tuple[InstanceGroup, ...] = ()
    dynamic_batching: DynamicBatching | None = None
    version_policy: VersionPolicy | None = None
    model_transaction_policy: Transaction | None = None
    parameters: dict[str, Parameter] = {}


class ConfigFault(Exception):
    """A text that is no configuration; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        self.line, self.message = line, message
        super().__init__(message)


def read_config(text: str) -> ModelConfig:
    """The configuration that a text says.

    Raises:
        ConfigFault: Triton would not read it either.
    """
    message = message_class()()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        last = max(1, len(text.splitlines()))
        raise ConfigFault(min(error.GetLine() or last, last), _in_one_line(str(error))) from None
    return ModelConfig.model_validate(json_format.MessageToDict(message, preserving_proto_field_name=True))


def _in_one_line(text: str) -> str:
    """The reader's words without the place and the line of the file before them."""
    words = re.sub(r"^\d+:\d+ ?: ", "", " ".join(text.split())).rstrip(".")
    return words.partition("': ")[2] or words if words.startswith("'") else words


@cache
def message_class() -> type[Message]:
    """The class of protobuf messages for configurations."""
    pool = DescriptorPool()
    pool.Add(description())
    return GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.ModelConfig"))


def description() -> FileDescriptorProto:
    """The whole description, made of the tables."""
    file = FileDescriptorProto(name="turnout_model_config.proto", package=PACKAGE, syntax="proto3")
    found: dict[str, DescriptorProto] = {}
    enums = dict(_rows(ENUMS))
    for name, row in _rows(MESSAGES):
        outer, _, own = name.rpartition(".")
        message = found[name] = (found[outer].nested_type if outer else file.message_type).add(name=own)
        for cell in filter(None, row.split("; ")):
            _add_field(message, name, cell, enums)
    for name, values in enums.items():
        outer, _, own = name.rpartition(".")
        enum = (found[outer].enum_type if outer else file.enum_type).add(name=own)
        for value in values.split():
            word, _, number = value.partition("=")
            enum.value.add(name=word, number=int(number))
    return file


def _rows(table: str) -> Iterator[tuple[str, str]]:
    for row in re.sub(r"\n +", " ", table.strip()).splitlines():
        name, _, rest = row.partition(":")
        yield name, rest.strip()


def _add_field(message: DescriptorProto, name: str, cell: str, enums: dict[str, str]) -> None:
    number, field_name, kind, *group = cell.split()
    label = (
        FieldDescriptorProto.LABEL_REPEATED if kind[0] == "*" or ":" in kind else FieldDescriptorProto.LABEL_OPTIONAL
    )
    field = message.field.add(name=field_name, number=int(number), label=label)
    kind = kind.removeprefix("*")
    if group:
        groups = [one.name for one in message.oneof_decl]
        if group[0][1:] not in groups:
            message.oneof_decl.add(name=group[0][1:])
            groups.append(group[0][1:])
        field.oneof_index = groups.index(group[0][1:])
    if kind.startswith("map:"):
        kind = _add_entry(message, name, field_name, kind.split(":")[1:], enums)
    _set_type(field, kind, enums)


def _add_entry(message: DescriptorProto, name: str, field: str, kinds: list[str], enums: dict[str, str]) -> str:
    """The message that one pair of a map is, as protobuf has it; gives its name."""
    own = "".join(part.capitalize() for part in field.split("_")) + "Entry"
    entry = message.nested_type.add(name=own)
    entry.options.map_entry = True
    for number, (part, kind) in enumerate(zip(("key", "value"), kinds, strict=True), 1):
        inner = entry.field.add(name=part, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        _set_type(inner, kind, enums)
    return f"{name}.{own}"


def _set_type(field: FieldDescriptorProto, kind: str, enums: dict[str, str]) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = FieldDescriptorProto.TYPE_ENUM if kind in enums else FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{kind}"
