"""The store list of a source as users write it (P-212): `ip:port[:regid]`."""

from stablecast.core.errors import StablecastError
from stablecast.core.settings import StoreSpec
from stablecast.net import address

MAX_REG_ID = 0xFFFF_FFFF
PARTS_WITH_REG_ID = 3


class StoreListError(StablecastError):
    """A store that is not written as it should be; the message names it and the form."""


def store_spec(text: str) -> StoreSpec:
    """Read one store, e.g. `127.0.0.1:14567:1000`. Raises StoreListError or AddressError."""
    parts = text.split(":")
    if len(parts) < PARTS_WITH_REG_ID:
        return StoreSpec(address.join(*address.parse(text)))
    if len(parts) > PARTS_WITH_REG_ID:
        raise StoreListError(f"'{text}' is not a store: write ip:port or ip:port:regid")
    number = parts[2]
    if not number.isdecimal() or int(number) > MAX_REG_ID:
        raise StoreListError(f"'{number}' is not a registration ID: write a number from 0 to {MAX_REG_ID}")
    return StoreSpec(address.join(*address.parse(":".join(parts[:2]))), int(number))
