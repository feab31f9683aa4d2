"""Checks between keys and the rest of the configuration, on plain values as in `crosscheck`."""

from collections.abc import Iterator, Mapping

from gateway.settings.problems import Finding, did_you_mean


def check_keys(tree: Mapping[str, object]) -> Iterator[Finding]:
    """Every broken rule about keys: a section without content, names and keys given twice, models that do not exist."""
    if "keys" in tree and tree["keys"] is None:
        message = "has no entries: without keys everybody may call, with an empty list nobody"
        yield Finding(("keys",), message, "leave it out, or write keys: []", at_key=True)
    keys = tree.get("keys")
    models = tree.get("models")
    known = set(_names(models)) if isinstance(models, Mapping) and models else None
    seen: dict[tuple[str, str], int] = {}
    for index, key in enumerate(keys if isinstance(keys, list) else []):
        if not isinstance(key, Mapping):
            continue
        for field, what in (("name", "a key already has this name"), ("hash", "the same key is there already")):
            value = key.get(field)
            if isinstance(value, str) and seen.setdefault((field, value.lower()), index) != index:
                yield Finding(("keys", index, field), what, "keep one of the two")
        allowed = key.get("models")
        for at, model in enumerate(allowed if isinstance(allowed, list) else []):
            if known is not None and isinstance(model, str) and model not in known:
                close = did_you_mean(model, known)
                yield Finding(("keys", index, "models", at), "no model has this name", close, value_as=': "{}"')


def _names(models: Mapping[str, object]) -> Iterator[str]:
    for name, model in models.items():
        yield name
        aliases = model.get("aliases") if isinstance(model, Mapping) else None
        yield from (alias for alias in (aliases if isinstance(aliases, list) else []) if isinstance(alias, str))
