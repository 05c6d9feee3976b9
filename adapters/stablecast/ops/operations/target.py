"""Parse the target of an operation: a directory, or a running store behind its monitor."""

from pathlib import Path
from urllib.parse import urlsplit

import attrs

from stablecast.core.errors import StablecastError

TOKEN_VARIABLE = "STABLECAST_MONITOR_TOKEN"  # noqa: S105 - the name of a variable, not a token
"""Environment variable with the monitor's token, used when no file is named."""


class OperationError(StablecastError):
    """Report an operation that is not possible; the text is one sentence that names the remedy."""


@attrs.frozen
class Remote:
    """Address a store of a running daemon: the monitor's base address and the number of the store."""

    base: str
    number: int


def place(text: str) -> Path | Remote:
    """Return a directory, or the remote store of `http://host:port[/stores/N]`; without N it is store 0.

    Raises OperationError.

    >>> place("http://127.0.0.1:15304/stores/2")
    Remote(base='http://127.0.0.1:15304', number=2)
    """
    if "://" in text:
        return _remote(text)
    path = Path(text)
    if not path.is_dir():
        raise OperationError(f"there is no directory {text}; name a store's directory or its monitor, http://ip:port")
    return path


def base(text: str) -> str:
    """Return the base address of a monitor, `[http://]host:port`. Raises OperationError.

    >>> base("127.0.0.1:15304")
    'http://127.0.0.1:15304'
    """
    return _remote(text if "://" in text else f"http://{text}").base


def _remote(text: str) -> Remote:
    parts = urlsplit(text)
    match parts.path.strip("/").split("/"):
        case [""] | ["stores"]:
            number = 0
        case ["stores", digits] if digits.isdecimal():
            number = int(digits)
        case _:
            number = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or number < 0:
        raise OperationError(f"'{text}' is no monitor's address: write http://ip:port or http://ip:port/stores/N")
    return Remote(f"{parts.scheme}://{parts.netloc}", number)
