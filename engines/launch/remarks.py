"""What is wrong with a launch before anything is started, as far as its settings alone tell."""

from collections.abc import Iterator
from dataclasses import dataclass

from engines.launch.command import option_of
from engines.launch.flags.table import read_flags
from engines.launch.kinds import FLAGS, AnyLaunch, kind_of


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is probably not meant: the key within the launch settings, the rule, why, and the way out."""

    key: str
    rule: str
    message: str
    fix: str


def flag_remarks(launch: AnyLaunch) -> Iterator[Remark]:
    """Further arguments that the engine does not know, or not so."""
    for given in read_flags(FLAGS[kind_of(launch)], launch.extra_args):
        if given.fault:
            rule = "unknown-flag" if given.flag is None else "flag-value"
            yield Remark("extra_args", rule, given.fault, given.fix)
        elif given.flag is not None and (key := _setting_of(launch, given.flag.name)) is not None:
            message = f"{given.written} is also what the key {key} says: the last one on the line wins"
            yield Remark("extra_args", "given-twice", message, "keep one of the two")


def _setting_of(launch: AnyLaunch, flag: str) -> str | None:
    """The key of a launch that is set and renders this flag."""
    for name, info in type(launch).model_fields.items():
        option = option_of(info)
        if option is not None and option.flag == flag and getattr(launch, name) not in (None, (), {}):
            return name
    return None
