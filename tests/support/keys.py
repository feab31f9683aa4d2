"""Keys for tests."""

from hashlib import sha256

from tests.support.json_type import Json

KEY = "sk-turnout-MARKED-a-key-that-must-never-be-seen"


def key_entry(name: str, key: str = KEY, **more: Json) -> dict[str, Json]:
    """An entry of `keys`."""
    return {"name": name, "hash": f"sha256:{sha256(key.encode()).hexdigest()}", **more}


def bearer(key: str = KEY) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {key}")]
