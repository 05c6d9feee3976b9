"""Relations between options: findings in a configuration, before anything is sent.

A finding has a stable code, a sentence for people, and a severity. A configuration with a fatal finding cannot work, or
would lose messages that may not be lost. Other findings are advice that a driver shows.
"""

from collections.abc import Iterator

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.messages import MAX_STORES, Pace
from stablecast.core.protocol.quorum import Consensus
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import FLIGHT_BYTES, ReceiverConfig, SourceConfig, StoreBehavior, StoreSpec

LARGE_FLIGHT = 1_000_000
"""Flight size in messages above which creation is slow and memory use is large."""

SAFE_GROUP = 3
"""Stores that a group needs to survive the loss of one (P-519, P-520)."""


@attrs.frozen
class Finding:
    """A contradiction, a risk or a peculiarity of a configuration."""

    code: str
    text: str
    fatal: bool


def relations(config: SourceConfig) -> tuple[Finding, ...]:
    if len(config.stores) > MAX_STORES:
        text = f"{len(config.stores)} stores are configured: a source has at most {MAX_STORES}"
        return (Finding("too-many-stores", text, True),)
    rules = (_addresses, _reg_ids, _groups, _round_robin, _pace, _flight, _advice)
    return tuple(finding for rule in rules for finding in rule(config))


def recovery_relations(config: ReceiverConfig, stores: int) -> tuple[Finding, ...]:
    """Return the findings in how a receiver recovers from a source with this many stores.

    The receiver asks the stores in turn, one interval each. A store that registers it after the first round began is
    asked in the next round only if there is time for one more interval (`tla/Recovery/doc_short.cfg`).
    """
    least = (stores + 1) * config.retry_ns
    if not stores or config.give_up_ns > least:
        return ()
    text = (
        f"a missing message is given up after {config.give_up_ns // MILLISECOND} ms, and to ask {stores} stores in"
        f" turn takes up to {least // MILLISECOND} ms: a store that has it may never be asked (P-433)"
    )
    return (Finding("short-give-up", text, False),)


def without_duplicates(stores: tuple[StoreSpec, ...]) -> list[int]:
    """Return the indices of the stores, each store once, because one store must not count twice.

    A store without address and name only holds a place, so that a proxy uses the same indices as its source.
    """
    firsts: dict[tuple[str, str], int] = {}
    for index, store in enumerate(stores):
        firsts.setdefault((store.address, store.name), index)
    return [index for key, index in firsts.items() if any(key)]


def _addresses(config: SourceConfig) -> Iterator[Finding]:
    for index, store in enumerate(config.stores):
        nowhere = not store.address and not store.name
        if nowhere and config.election is None:
            yield Finding("store-nowhere", f"store {index} has neither an address nor a name", True)
        if store.address.startswith("0.0.0.0"):  # noqa: S104 - not bound to, refused
            yield Finding("store-anywhere", f"store {index} has the address {store.address}; name one host", True)
        if not nowhere and index not in without_duplicates(config.stores):
            text = f"store {index} [{store.address or store.name}] is listed before; it is passed over"
            yield Finding("duplicate-store", text, False)


def _reg_ids(config: SourceConfig) -> Iterator[Finding]:
    asked = [bool(config.stores[index].reg_id) for index in without_duplicates(config.stores)]
    if config.session_id and any(asked):
        yield Finding("reg-id-ignored", "registration IDs are ignored, for there is a session id (U20)", False)
    elif any(asked) and not all(asked):
        yield Finding("mixed-reg-ids", "some stores have a registration ID and some have none; give all or none", True)
    if config.wants_proxy and not config.session_id and not all(asked):
        text = "no proxy can stand in for a source with neither a session id nor registration IDs"
        yield Finding("proxy-without-identity", text, False)


def _groups(config: SourceConfig) -> Iterator[Finding]:
    if config.behavior is StoreBehavior.RR:
        return
    sizes = config.groups.sizes
    for index, store in enumerate(config.stores):
        if not 0 <= store.group < len(sizes):
            yield Finding("group-index", f"store {index} is in group {store.group}, which is not configured", True)
    refused = Repair.EVERY_GROUP in config.repairs
    for group, size in enumerate(sizes):
        listed = sum(config.stores[index].group == group for index in without_duplicates(config.stores))
        if listed > size:
            text = f"group {group} of size {size} lists {listed} stores: stable messages may become unavailable (P-526)"
            yield Finding("backup-stores", text, refused)
        if size == 1 and len(sizes) > 1:
            text = f"group {group} of several has one store only: messages may be lost after recovery (P-525)"
            yield Finding("one-store-group", text, False)
        if size % 2 == 0:
            text = f"group {group} has the even size {size}: it survives no more than one of size {size - 1} (U12)"
            yield Finding("even-group", text, False)
        if size < SAFE_GROUP:
            yield Finding("small-group", f"group {group} has size {size}: it survives no loss of a store", False)


def _round_robin(config: SourceConfig) -> Iterator[Finding]:
    if config.behavior is not StoreBehavior.RR:
        return
    text = "round robin is deprecated: a message that one store has is gone with it (P-505); use quorums"
    yield Finding("round-robin", text, False)
    if len(config.groups.sizes) > 1 or any(store.group for store in config.stores):
        yield Finding("round-robin-groups", "round robin knows no groups", True)
    if config.pace is Pace.RECEIVERS:
        yield Finding("round-robin-paced", "receiver-paced persistence needs quorums, not round robin (P-594)", True)
    if config.wants_proxy:
        yield Finding("round-robin-proxy", "proxy sources need quorums, not round robin (P-543)", True)


def _pace(config: SourceConfig) -> Iterator[Finding]:
    if config.pace is Pace.RECEIVERS and config.flight_bytes in (0, FLIGHT_BYTES):
        yield Finding("paced-without-bytes", "receiver-paced persistence needs a flight size in bytes (P-565)", True)


def _flight(config: SourceConfig) -> Iterator[Finding]:
    if config.flight_messages > LARGE_FLIGHT:
        text = f"a flight of {config.flight_messages} messages is more than {LARGE_FLIGHT}"
        yield Finding("large-flight", text, False)
    if config.stores and config.flight_bytes > config.retention.limit_bytes:
        text = f"the flight of {config.flight_bytes} bytes exceeds the {config.retention.limit_bytes} bytes retained"
        yield Finding("retention-below-flight", f"{text}: messages in flight are reclaimed by force (P-327)", False)


def _advice(config: SourceConfig) -> Iterator[Finding]:
    if not config.stores:
        return
    if config.consensus is not Consensus.HIGHEST:
        text = f"consensus {config.consensus.name.lower()} may use numbers of stable messages again; use highest"
        yield Finding("consensus", text, False)
    if not config.late_join:
        text = f'Source "{config.topic}" Late Join not set, but UME store specified. Setting Late Join.'
        yield Finding("late-join-set", text, False)
