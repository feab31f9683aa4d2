"""As much of JSON Schema as the schemas of calls use; references are JSON pointers from the root."""

from typing import Final

from tests.support.json_type import Json

TYPES: Final[dict[str, tuple[type, ...]]] = {"object": (dict,), "array": (list,), "string": (str,), "integer": (int,)}


class Schema:
    """A schema that values can be held against."""

    def __init__(self, root: Json) -> None:
        self.root = root

    def __call__(self, value: Json) -> bool:
        return self._fits(self.root, value)

    def _at(self, reference: str) -> Json:
        found = self.root
        for step in reference.removeprefix("#").split("/")[1:]:
            found = found[step]
        return found

    def _fits(self, schema: Json, value: Json) -> bool:
        if "$ref" in schema:
            return self._fits(self._at(schema["$ref"]), value)
        if "const" in schema and value != schema["const"]:
            return False
        if "anyOf" in schema and not any(self._fits(option, value) for option in schema["anyOf"]):
            return False
        if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
            return False
        return self._fits_list(schema, value) if isinstance(value, list) else self._fits_object(schema, value)

    def _fits_list(self, schema: Json, value: Json) -> bool:
        within = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return within and all(self._fits(schema.get("items", {}), item) for item in value)

    def _fits_object(self, schema: Json, value: Json) -> bool:
        if not isinstance(value, dict):
            return True
        known = schema.get("properties", {})
        if not set(schema.get("required", ())) <= value.keys():
            return False
        if schema.get("additionalProperties") is False and not value.keys() <= known.keys():
            return False
        return all(self._fits(known.get(name, {}), item) for name, item in value.items())
