"""Stores of one quorum that one fault ends together: in one daemon, or on one file system.

A quorum survives the loss of a minority of its stores, if they are lost one by one. Stores of one daemon end with its
process and its host; stores on one file system run out of room together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from stablecast.config.interfaces import ANY
from stablecast.config.plan import Plan, StorePlan
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.runtime import address


class Named(Protocol):
    """An option file of a client."""

    @property
    def path(self) -> str:
        """Its name."""

    @property
    def source(self) -> SourceConfig:
        """What it makes of a source."""


@attrs.frozen
class Shared:
    """Stores, by their names, that one thing has in common. `daemon` tells a daemon from a file system."""

    where: str
    stores: tuple[str, ...]
    what: str
    daemon: bool


def of_client(plans: Sequence[Plan], client: Named) -> Iterator[Shared]:
    """Yield what several stores of one group of this client share; a group is an independent quorum."""
    groups: dict[int, list[tuple[int, StorePlan]]] = defaultdict(list)
    for spec in client.source.stores:
        groups[spec.group] += [
            (at, store) for at, plan in enumerate(plans) for store in plan.stores if _is(spec, store)
        ]
    for index, members in sorted(groups.items()):
        where = f"{client.path}: group {index}"
        for at, stores in _together(members).items():
            yield Shared(where, _names(stores), plans[at].path, daemon=True)
        yield from _on_one_disk(where, [store for _, store in members])


def of_daemon(plan: Plan) -> Iterator[Shared]:
    """Yield what the stores of a daemon share on disk."""
    yield from _on_one_disk(plan.path, plan.stores)


def _on_one_disk(where: str, stores: Iterable[StorePlan]) -> Iterator[Shared]:
    placed = ((_device(store.cache_directory), store) for store in stores)
    for found in _together((device, store) for device, store in placed if device is not None).values():
        yield Shared(where, _names(found), str(found[0].cache_directory), daemon=False)


def _together(placed: Iterable[tuple[int, StorePlan]]) -> dict[int, list[StorePlan]]:
    """The places that several stores have in common."""
    found: dict[int, list[StorePlan]] = defaultdict(list)
    for place, store in placed:
        found[place].append(store)
    return {place: stores for place, stores in found.items() if len(stores) > 1}


def _names(stores: Iterable[StorePlan]) -> tuple[str, ...]:
    return tuple(store.name for store in stores)


def _is(spec: StoreSpec, store: StorePlan) -> bool:
    """Whether a client's entry certainly means this store: by its name, or by an address that is one host's alone."""
    if spec.name:
        return spec.name == store.context_name
    host, port = address.parse(spec.address)
    return port == store.port and host == store.host != ANY


def _device(directory: Path) -> int | None:
    """The file system of a directory, on the host that checks; None: it is not there."""
    try:
        return directory.stat().st_dev
    except OSError:
        return None
