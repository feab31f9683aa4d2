"""The types of single values: what each accepts, as pydantic annotations, and how it is written, for editors.

Every rejection is a ValueError that says what is expected, never what was given: it may be a secret in the wrong place.
"""

import math
import re
from collections.abc import Callable
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from engines.section import UnfitValueError
from gateway.settings import written
from gateway.settings.secrets import read_secret
from gateway.settings.units import parse_duration, parse_share, parse_size
from gateway.settings.written import Written
from gateway.wire.toolcalls import UnknownFormatError, format_named, reasoning_named
from gateway.wire.toolcalls.aliases import ALIASES
from gateway.wire.toolcalls.formats import REASONINGS

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
MANY_ADDRESSES: Final = "dns+"
_TAKEN: Final = frozenset(
    {"host", "content-type", "content-length", "accept-encoding", "transfer-encoding", "connection", "x-request-id"}
)
"""Headers that the gateway itself sends to engines."""

_URL_EXAMPLE: Final = "such as http://127.0.0.1:8000"


class RefusedValueError(UnfitValueError):
    """A value that this configuration does not take."""


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    raise RefusedValueError("expected a whole number")


def _whole_from(least: int, most: int | None = None) -> BeforeValidator:
    wanted = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def check(value: object) -> int:
        number = _whole(value)
        if number < least or (most is not None and number > most):
            raise RefusedValueError(f"expected a whole number {wanted}")
        return number

    return BeforeValidator(check)


def _number_above_zero(value: object) -> float:
    if isinstance(value, str):
        value = _as_float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return float(value)
    raise RefusedValueError("expected a number above 0")


def _factor(value: object) -> float:
    factor = _number_above_zero(value)
    if factor < 1:
        raise RefusedValueError("expected a number of at least 1")
    return factor


def _share(value: object) -> float:
    try:
        return parse_share(value)
    except ValueError as error:
        raise RefusedValueError(f"expected {error}") from None


def _header_name(value: object) -> str:
    text = as_text(value)
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", text):
        raise RefusedValueError("expected the name of a header, such as x-session-id")
    return text.lower()


def _key_header(value: object) -> str:
    name = _header_name(value)
    if name in _TAKEN:
        raise RefusedValueError("the gateway itself sends this header to engines")
    return name


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _duration(value: object) -> float:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise RefusedValueError(f"expected {error}") from None


def _duration_above_zero(value: object) -> float:
    seconds = _duration(value)
    if seconds == 0:
        raise RefusedValueError("expected a duration above 0")
    return seconds


def _size_above_zero(value: object) -> int:
    try:
        size = parse_size(value)
    except ValueError as error:
        raise RefusedValueError(f"expected {error}") from None
    if size == 0:
        raise RefusedValueError("expected a size above 0")
    return size


def as_text(value: object) -> str:
    """The value, if it is text. Raises RefusedValueError."""
    if isinstance(value, bool | int | float):
        raise RefusedValueError("expected text", "put it in quotes")
    if not isinstance(value, str):
        raise RefusedValueError("expected text")
    return value


def _name(value: object) -> str:
    text = as_text(value)
    if not text or text != text.strip() or not text.isprintable():
        raise RefusedValueError("expected a name without blanks around it or control characters")
    return text


def _path(value: object) -> str:
    text = as_text(value)
    if not re.fullmatch(r"/[!-~]*", text):
        raise RefusedValueError("expected a path that begins with a slash, such as /health")
    return text


def _origin(value: object) -> str:
    text = as_text(value)
    if text == "*":
        return text
    if not re.fullmatch(rf"https?://(?:{_HOST.pattern})(?::[0-9]{{1,5}})?", text):
        raise RefusedValueError(
            "expected an origin such as https://chat.example.org, or *", "scheme, host and port only"
        )
    return text


def engine_url(value: object) -> str:
    """A base address without a slash at its end; with `dns+` before it, all addresses that its host's name has.

    Raises:
        RefusedValueError: not http(s), no host, a bad port, credentials, a query, or the /v1 that the gateway adds.
    """
    text = as_text(value)
    if text.startswith(MANY_ADDRESSES):
        return MANY_ADDRESSES + _http_url(text.removeprefix(MANY_ADDRESSES))
    return _http_url(text)


def _own_url(value: object) -> str:
    return _http_url(as_text(value))


def _address(value: object) -> str:
    text = as_text(value)
    found = re.fullmatch(rf"(?:{_HOST.pattern}):([0-9]{{1,5}})", text)
    if found is None or not 0 < int(found[1]) < 65536:
        raise RefusedValueError("expected host:port, such as 127.0.0.1:8001", "no scheme and no path")
    return text


def _http_url(text: str) -> str:
    if not re.match(r"https?://", text):
        raise RefusedValueError(f"expected a URL with http:// or https://, {_URL_EXAMPLE}")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise RefusedValueError(
            f"expected a URL with a valid host and a port from 1 to 65535, {_URL_EXAMPLE}"
        ) from None
    authority = url.netloc.removesuffix(f":{port}")
    if "@" in url.netloc:
        raise RefusedValueError("a URL must not hold credentials", "use api_key")
    if not _HOST.fullmatch(authority) or port == 0:
        raise RefusedValueError(f"expected a URL with a valid host and port, {_URL_EXAMPLE}")
    if "?" in text or "#" in text:
        raise RefusedValueError("a base URL has no query and no fragment", "leave out everything from ? or # on")
    if not re.fullmatch(r"[!-~]*", url.path):
        raise RefusedValueError("expected a URL without blanks or control characters; other characters percent-encoded")
    if url.path.rstrip("/").endswith("/v1"):
        raise RefusedValueError("a base URL ends before /v1, which is added to it", "leave out /v1")
    return text.rstrip("/")


def _named(*words: str, known: Callable[[str], object]) -> BeforeValidator:
    """One of the words, or a name that `known` takes; it raises UnknownFormatError for others."""

    def check(value: object) -> str:
        text = _name(value)
        if text in words:
            return text
        try:
            known(text)
        except UnknownFormatError as error:
            close = str(error).partition("; ")[2].rstrip("?") or None
            wanted = f"expected {', '.join(words)}, or a name that an engine has for it"
            raise RefusedValueError(wanted, close) from None
        return text

    return BeforeValidator(check)


def _offered(*names: str) -> Written:
    """Names that editors offer; engines have more names for the same."""
    return Written(written.one_of(names, others=True))


def _at_least_one(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise RefusedValueError("expected at least one entry")
    return values


def _secret(value: object) -> SecretStr | None:
    if isinstance(value, SecretStr):
        return value
    text = as_text(value)
    try:
        secret = read_secret(text)
    except ValueError as error:
        raise RefusedValueError(str(error)) from None
    return SecretStr(secret) if secret else None


_REASONINGS: Final = tuple(family.name for family in REASONINGS)

WholeNumber = Annotated[int, _whole_from(0), written.whole(0)]
PositiveNumber = Annotated[int, _whole_from(1), written.whole(1)]
TcpPort = Annotated[int, _whole_from(0, 65535), written.whole(0, 65535)]
PositiveFloat = Annotated[float, BeforeValidator(_number_above_zero), written.POSITIVE_NUMBER]
AtLeastOne = Annotated[float, BeforeValidator(_factor), written.AT_LEAST_ONE]
Share = Annotated[float, BeforeValidator(_share), written.SHARE]
KeyHeader = Annotated[str, BeforeValidator(_key_header), written.HEADER]
HeaderName = Annotated[str, BeforeValidator(_header_name), written.HEADER]
Duration = Annotated[float, BeforeValidator(_duration), written.DURATION]
PositiveDuration = Annotated[float, BeforeValidator(_duration_above_zero), written.POSITIVE_DURATION]
PositiveSize = Annotated[int, BeforeValidator(_size_above_zero), written.POSITIVE_SIZE]
Name = Annotated[str, BeforeValidator(_name), written.NAME]
PathText = Annotated[str, BeforeValidator(_path), written.PATH]
Origin = Annotated[str, BeforeValidator(_origin), written.ORIGIN]
ServerUrl = Annotated[str, BeforeValidator(_own_url), written.SERVER_URL]
HostPort = Annotated[str, BeforeValidator(_address), written.HOST_PORT]
EngineUrl = Annotated[str, BeforeValidator(engine_url), written.URL]
EngineUrls = Annotated[tuple[EngineUrl, ...], AfterValidator(_at_least_one), written.SOME]
Secret = Annotated[SecretStr | None, BeforeValidator(_secret), written.SECRET]
FormatName = Annotated[str, _named("auto", known=format_named), _offered("auto", *ALIASES)]
ParserName = Annotated[str, _named("none", known=format_named), _offered("none", *ALIASES)]
ReasoningName = Annotated[str, _named("auto", "off", known=reasoning_named), _offered("auto", "off", *_REASONINGS)]
