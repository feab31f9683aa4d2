"""What hypothesis makes streams and bodies of."""

import json

from hypothesis import strategies as st

from tests.support.json_type import Json

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "北",
        "😀",
        '"model":"org/m"',
        '"finish_reason":"stop"',
        "data: [DONE]",
        "[DONE]",
        '"error"',
        "\r\n\r\n",
        "\n\ndata: ",
    ]
)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The bytes in any packets, empty ones left out."""
    places = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True) if a < b]


def spelled(document: Json, *, spaced: bool = False) -> bytes:
    return json.dumps(document, separators=None if spaced else (",", ":"), ensure_ascii=False).encode()
