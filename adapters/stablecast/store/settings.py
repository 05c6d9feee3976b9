"""The settings of a store, and how the plan of a daemon becomes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from stablecast.config.disk_options import DiskConfig
from stablecast.config.option_kinds import Value
from stablecast.config.plan import Plan, StoreLimits, StorePlan
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig
from stablecast.runtime import address, machine
from stablecast.store.journal import DISK, SEGMENT_BYTES, Disk
from stablecast.store.journal.disk import MIN_SCRUB_BYTES, ScrubPace
from stablecast.store.journal.segments import FEW_OPEN_FILES, MAX_OPEN_FILES
from stablecast.store.log_lines import Write, unheard
from stablecast.store.recovered_state import everything

ON_DISK = (RepositoryType.DISK, RepositoryType.REDUCED_FD)

HOUR_SECONDS = 3600

_LIMITS = StoreLimits()

FILES_PER_LIMIT = 4
"""Files of the journal that fit the smallest repository-disk-file-size-limit. Two more may be in use beyond it."""

MIN_SEGMENT_BYTES = 1 << 20
"""Bytes of a file at least, because each new one costs two syncs."""


def no_options(_topic: str) -> Mapping[str, Value]:
    return {}


@attrs.frozen
class StoreSettings:
    """The settings of one store.

    Attributes:
        listen: `ip:port`. Port 0 means any port, or the first free one of `ports`.
        directory: The directory of the journal (disk-cache-directory).
        config: The configuration of the machine; None means the defaults.
        trace: The directory for traces.
        disk: The system calls of the journal, and their limits.
        new: True if an empty directory belongs to a new store. Otherwise its files were lost (formal design, 7.6).
        resolver: Relays `ip:port` through which receivers find the store's proxies.
        resolver_service: Resolver services `host:port`, likewise.
        resolution: More options of resolution: multicast, and its pace.
        name: The name of the store, for people.
        context_name: The name by which sources find the store through relays or multicast; empty for none.
        state_directory: The directory of the store's identity (`directory_identity`); None for no identity.
        reads: Disk reads for one source at one time (repository-disk-max-read-async-cbs).
        limits: Limits on clients, sources and disk space.
        log: Gets each line for people.
        proxy_options: Returns the source options of the proxies of a topic.
        transports: The settings for receiving over LBT-RM and LBT-RU.
        restore_last_ns: Returns how far back from a source's newest message a restart restores, by topic; 0 means all.
    """

    listen: str
    directory: Path
    config: StoreConfig | None = None
    trace: Path | None = None
    disk: Disk = DISK
    new: bool = False
    resolver: Sequence[str] = ()
    resolver_service: Sequence[str] = ()
    resolution: Mapping[str, Value] = attrs.field(factory=dict)
    ports: tuple[int, int] | None = None
    name: str = ""
    context_name: str = ""
    state_directory: Path | None = None
    reads: int = 10_000
    limits: StoreLimits = StoreLimits()
    log: Write = unheard
    proxy_options: Callable[[str], Mapping[str, Value]] = no_options
    transports: TransportConfig = TransportConfig()
    restore_last_ns: Callable[[str], int] = everything


def segment_bytes(config: StoreConfig) -> int:
    """Return the bytes of a journal's file.

    A file is deleted as a whole, once all its messages are reclaimed. So the newest file and the rest of the oldest one
    exceed the configured limits, and should be small against them (P-118).
    """
    kept = [rule.repository for rule in config.topics] + [config.repository or RepositoryConfig(disk_limit=0)]
    limits = [one.disk_limit for one in kept if one.kind in ON_DISK and one.disk_limit]
    return max(MIN_SEGMENT_BYTES, min([SEGMENT_BYTES, *(limit // FILES_PER_LIMIT for limit in limits)]))


def disk_of(config: DiskConfig, store: StoreConfig, limits: StoreLimits = _LIMITS, few_files: bool = False) -> Disk:
    """Return the disk of a store under these options; `few_files` limits it to five descriptors (P-105)."""
    return Disk(
        scrub=ScrubPace(limits.scrub_hours * HOUR_SECONDS, max(MIN_SCRUB_BYTES, limits.scrub_bytes)),
        segment_bytes=segment_bytes(store),
        buffer_bytes=config.buffer_bytes,
        preallocate=config.preallocate,
        verify=config.checksum,
        open_files=FEW_OPEN_FILES if few_files else MAX_OPEN_FILES,
    )


def settings_of(plan: StorePlan, log: Write, *, new: bool = False, trace: Path | None = None) -> StoreSettings:
    kinds = {topic.rule.repository.kind for topic in plan.topics}
    few_files = RepositoryType.REDUCED_FD in kinds and RepositoryType.DISK not in kinds
    seed = int.from_bytes(machine.entropy.octets(8), "big")
    return StoreSettings(
        address.join(plan.host, plan.port),
        plan.cache_directory,
        attrs.evolve(plan.config, seed=seed),
        trace,
        disk_of(plan.disk, plan.config, plan.limits, few_files),
        new=new,
        resolver=plan.resolver,
        resolver_service=plan.resolver_service,
        resolution=plan.resolution,
        ports=plan.ports,
        name=plan.name,
        context_name=plan.context_name,
        state_directory=plan.state_directory,
        reads=plan.disk.reads,
        limits=plan.limits,
        log=log,
        proxy_options=plan.proxy_options,
        transports=plan.transports,
        restore_last_ns=plan.restore_last_ns,
    )


def all_settings(plan: Plan, log: Write, *, new: bool = False, trace: Path | None = None) -> list[StoreSettings]:
    return [settings_of(store, log, new=new, trace=trace) for store in plan.stores]
