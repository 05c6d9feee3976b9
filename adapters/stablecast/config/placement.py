"""Stores of one quorum that one fault ends together: in one daemon, or on one file system.

A quorum survives the loss of a minority of its stores. Stores of one daemon end together with its process and its host;
stores on one file system run out of space together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from stablecast.config.plan import Plan, StorePlan
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.runtime import address, machine
from stablecast.runtime.interfaces import ANY
from stablecast.transports.codec.domains import split_domain


@attrs.frozen
class SharedFault:
    """The names of stores that share a daemon (`daemon`) or a file system, and its name (`what`)."""

    where: str
    stores: tuple[str, ...]
    what: str
    daemon: bool


def of_client(plans: Sequence[Plan], path: str, source: SourceConfig) -> Iterator[SharedFault]:
    """Yield the daemons and file systems that stores of one group of a source share; a group is a quorum.

    `path` is the file that configures the source.
    """
    groups: dict[int, list[tuple[int, StorePlan]]] = defaultdict(list)
    for spec in source.stores:
        groups[spec.group] += [
            (at, store) for at, plan in enumerate(plans) for store in plan.stores if _is(spec, store)
        ]
    for index, members in sorted(groups.items()):
        where = f"{path}: group {index}"
        for at, stores in _together(members).items():
            yield SharedFault(where, _names(stores), plans[at].path, daemon=True)
        yield from _on_one_disk(where, [store for _, store in members])


def of_daemon(plan: Plan) -> Iterator[SharedFault]:
    """Yield the file systems that several stores of a daemon share."""
    yield from _on_one_disk(plan.path, plan.stores)


def _on_one_disk(where: str, stores: Iterable[StorePlan]) -> Iterator[SharedFault]:
    placed = ((_device(store.cache_directory), store) for store in stores)
    for found in _together((device, store) for device, store in placed if device is not None).values():
        yield SharedFault(where, _names(found), str(found[0].cache_directory), daemon=False)


def _together(placed: Iterable[tuple[int, StorePlan]]) -> dict[int, list[StorePlan]]:
    """Return the places that several stores have in common, with these stores."""
    found: dict[int, list[StorePlan]] = defaultdict(list)
    for place, store in placed:
        found[place].append(store)
    return {place: stores for place, stores in found.items() if len(stores) > 1}


def _names(stores: Iterable[StorePlan]) -> tuple[str, ...]:
    return tuple(store.name for store in stores)


def _is(spec: StoreSpec, store: StorePlan) -> bool:
    """Return whether a client's entry certainly means this store, by its name or by an address that is not 0.0.0.0."""
    if spec.name:
        return spec.name == store.context_name
    host, port = address.parse(split_domain(spec.address)[1])
    return port == store.port and host == store.host != ANY


def _device(directory: Path) -> int | None:
    """Return the file system of a directory on this host, or None if there is no such directory."""
    try:
        return machine.files.stat(directory).st_dev
    except OSError:
        return None
