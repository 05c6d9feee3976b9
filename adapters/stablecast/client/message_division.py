"""The shares of messages: by a key that the application names, or by number."""

from collections.abc import Callable

from stablecast.client.batch import Batch
from stablecast.client.message import Message
from stablecast.core.errors import MisuseError
from stablecast.core.sharing.division import share_of_key, share_of_number

MessageKey = str | Callable[[Message], object] | None
"""The name of a property, or a function that returns bytes, a str or an int; None divides by number."""


def octets_of(key: object) -> bytes:
    """Return the bytes of a key. Raises MisuseError for a key of another kind."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, int):
        return str(int(key)).encode()
    raise MisuseError(f"the key of a message must be bytes, str or int, not {type(key).__name__}")


class MessageDivision:
    """Names the share of each message, the same at all members."""

    def __init__(self, shares: int, key: MessageKey) -> None:
        """Divide into `shares`. Messages whose key is None, or that lack the property, are divided by number."""
        self.shares = shares
        self._key = key

    def __call__(self, batch: Batch) -> list[int]:
        """Return the share of each message. Raises what the function for keys raises, and MisuseError for its key."""
        shares, key = self.shares, self._key
        numbers = [batch.numbers(index)[1] for index in range(batch.count)]
        if key is None:
            return [share_of_number(number, shares) for number in numbers]
        if isinstance(key, str):
            keys: list[object] = [batch.properties(index).get(key) for index in range(batch.count)]
        else:
            keys = [key(Message(payload, batch, index)) for index, payload in enumerate(batch.payloads())]
        return [
            share_of_number(number, shares) if found is None else share_of_key(octets_of(found), shares)
            for found, number in zip(keys, numbers, strict=True)
        ]
