"""What calls without markup of their own begin with."""

from gateway.wire.toolcalls.spec import Grammar, Kernel


def begins(grammar: Grammar, char: str) -> bool:
    """Whether a shape without markup can begin with `char`."""
    match grammar.kernel:
        case Kernel.JSON:
            return char in ("{", "[") or (grammar.fenced and char == "`")
        case Kernel.PYTHONIC:
            return char == "["
        case Kernel.NAME_JSON:
            return char.isalnum() or char == "_" or (grammar.list_of and char in ("[", "{"))
        case _:
            return char == "c"


def direct(grammar: Grammar, char: str) -> bool:
    """Whether an item can stand in its section without an opener and begin with `char`."""
    if grammar.at_start:
        return begins(grammar, char)
    match grammar.kernel:
        case Kernel.JSON:
            return char in ("{", "[", "`")
        case Kernel.KEYED:
            return char == "["
        case Kernel.PYTHONIC:
            return char in ("[", "_") or char.isalpha()
        case Kernel.OBJECT:
            return char == "c"
        case _:
            return bool(grammar.opens) and char in ("{", "[")
