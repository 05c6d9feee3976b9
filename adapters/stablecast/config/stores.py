"""The stores of a source as users write them (P-201, P-212).

    [domain:]ip:port[:regid[:group]]     by address or host (`ume_store`); without a domain, or with 0, in the own one
    name[:regid[:group]]                 by name (`ume_store_name`)
    index:size                           the size of a group (`ume_store_group`)

Groups may have any numbers; the machines number them from 0 in that order. Without a size, all stores are one group.
"""

import re
from typing import Any

import attrs

from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.runtime import address
from stablecast.transports.codec.domains import MAX_DOMAIN, join_domain

MAX_REG_ID = 0xFFFF_FFFF
MAX_GROUP = 255
"""Largest group index: one byte on the wire."""
MAX_GROUP_SIZE = 65_535
"""Largest number of stores in a group: two bytes on the wire."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""The form of a store's name (P-815)."""
NOWHERE = "0.0.0.0:0"
"""The entry that clears a list of addresses."""
NOTHING = "0:0"
"""The entry that clears a list of names or groups."""


class StoreListError(StablecastError):
    """A malformed store or group; the message names it and the expected form."""


def store_spec(text: str) -> StoreSpec:
    """Parse one store by address or host: `127.0.0.1:14567:1000` (P-213). Raises StoreListError or AddressError."""
    if text.startswith("["):
        address.check_ip(text[: text.find("]") + 1])  # It raises: a store has no IPv6 address.
    parts, domain = text.split(":"), 0
    if has_domain(text):
        domain = _number(parts.pop(0), "a domain", MAX_DOMAIN)
    if len(parts) > 4:
        raise StoreListError(f"'{text}' is not a store: write ip:port, ip:port:regid or ip:port:regid:group")
    where = join_domain(domain, address.join(*address.parse_place(":".join(parts[:2]))))
    reg_id, group = _reg_id_and_group(parts[2:])
    # The machines know a store by its address. A host, like the name of a store, gets one when it is located.
    return StoreSpec("", reg_id, group, where) if address.is_host(where) else StoreSpec(where, reg_id, group)


def has_domain(text: str) -> bool:
    """Return whether the entry of a store begins with a domain: `1:10.0.0.7:14567` (P-201)."""
    parts = text.split(":")
    return len(parts) > 2 and parts[0].isdecimal() and not parts[1].isdecimal()


def named_store(text: str) -> StoreSpec:
    """Parse one store by name, e.g. `NEWYORK-1:1000`. Raises StoreListError."""
    name, *rest = text.split(":")
    if not NAME.fullmatch(name):
        raise StoreListError(f"'{name}' is not a store's name: write 1 to 128 letters, digits, hyphens, underscores")
    if len(rest) > 2:
        raise StoreListError(f"'{text}' is not a store: write name, name:regid or name:regid:group")
    reg_id, group = _reg_id_and_group(rest)
    return StoreSpec("", reg_id, group, name)


def add_store(config: SourceConfig, text: str) -> SourceConfig:
    """Add a store by address, or remove all of them. Raises StoreListError or AddressError."""
    if text == NOWHERE:
        return _with_stores(config, tuple(store for store in config.stores if _has_name(store)))
    return _with_stores(config, (*config.stores, store_spec(text)))


def add_named_store(config: SourceConfig, text: str) -> SourceConfig:
    """Add a store by name, or remove all of them. Raises StoreListError."""
    if text == NOTHING:
        return _with_stores(config, tuple(store for store in config.stores if not _has_name(store)))
    return _with_stores(config, (*config.stores, named_store(text)))


def add_group(config: SourceConfig, text: str) -> SourceConfig:
    """Set the size of one group, or remove all groups (P-512). Raises StoreListError."""
    if text == NOTHING:
        return _with_sizes(config, ())
    index_text, colon, size_text = text.partition(":")
    if not colon:
        raise StoreListError(f"'{text}' is not a group: write index:size, for example 0:3")
    index = _number(index_text, "a group index", MAX_GROUP)
    size = _number(size_text, "a group size", MAX_GROUP_SIZE)
    sizes = config.groups.sizes
    if size == 0:
        raise StoreListError(f"group {index} needs a size of 1 or more")
    if sizes == (len(config.stores),) and index and all(store.group for store in config.stores):
        sizes = ()  # The size of the only group, if none is set: these stores have another number.
    sizes = (*sizes, *(0 for _ in range(index - len(sizes))))
    return _with_sizes(config, (*sizes[:index], size, *sizes[index + 1 :]))


def numbered(config: Any) -> Any:
    """Return the configuration of a source with its groups numbered from 0, without the numbers of no group.

    A store in a group that has no size keeps its number, which a finding reports.
    """
    sizes, used = config.groups.sizes, {store.group for store in config.stores}
    alone = len(sizes) == 1 and len(used) == 1
    numbers = sorted(used) if alone else [index for index, size in enumerate(sizes) if size]
    if not used <= set(numbers) or numbers == list(range(len(sizes))):
        return config
    stores = tuple(attrs.evolve(store, group=numbers.index(store.group)) for store in config.stores)
    return _with_sizes(attrs.evolve(config, stores=stores), tuple(size for size in sizes if size))


def _has_name(store: StoreSpec) -> bool:
    """Return whether a store was given by its name, not by an address or a host."""
    return bool(store.name) and not address.is_host(store.name)


def _with_stores(config: SourceConfig, stores: tuple[StoreSpec, ...]) -> SourceConfig:
    alone = config.groups.sizes in ((), (len(config.stores),))
    config = attrs.evolve(config, stores=stores)
    return _with_sizes(config, (len(stores),) if stores else ()) if alone else config


def _with_sizes(config: SourceConfig, sizes: tuple[int, ...]) -> SourceConfig:
    return attrs.evolve(config, groups=attrs.evolve(config.groups, sizes=sizes))


def _reg_id_and_group(parts: list[str]) -> tuple[int, int]:
    reg_id = _number(parts[0], "a registration ID", MAX_REG_ID) if parts else 0
    return reg_id, _number(parts[1], "a group index", MAX_GROUP) if parts[1:] else 0


def _number(text: str, what: str, high: int) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > high:
        raise StoreListError(f"'{text}' is not {what}: write a number from 0 to {high}")
    return int(text)
