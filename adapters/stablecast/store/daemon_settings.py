"""From the plan of a daemon to the settings of its stores."""

import os
from pathlib import Path

import attrs

from stablecast.config.disk_options import DiskConfig
from stablecast.config.plan import Plan, StorePlan
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig
from stablecast.runtime import address
from stablecast.store.journal import Disk
from stablecast.store.journal.disk import SEGMENT_BYTES
from stablecast.store.journal.segments import FEW_OPEN_FILES, MAX_OPEN_FILES
from stablecast.store.log_lines import Write
from stablecast.store.settings import StoreSettings

ON_DISK = (RepositoryType.DISK, RepositoryType.REDUCED_FD)

FILES_PER_LIMIT = 4
"""Files of the journal in the smallest repository-disk-file-size-limit: two of them may be in use beyond the limit."""

MIN_SEGMENT_BYTES = 1 << 20
"""Of such a file, in bytes: each new one costs two syncs."""


def segment_bytes(config: StoreConfig) -> int:
    """Return how large the files of a journal are, in bytes.

    A file goes as a whole, once nothing in it is wanted. So beside what the limits allow there are always the newest
    file and the rest of the oldest one, and those are to be small against the limits (P-118).
    """
    kept = [rule.repository for rule in config.topics] + [config.repository or RepositoryConfig(disk_limit=0)]
    limits = [one.disk_limit for one in kept if one.kind in ON_DISK and one.disk_limit]
    return max(MIN_SEGMENT_BYTES, min([SEGMENT_BYTES, *(limit // FILES_PER_LIMIT for limit in limits)]))


def disk_of(config: DiskConfig, store: StoreConfig, few_files: bool = False) -> Disk:
    """How a store's journal is used under these options; `few_files`: with five descriptors in all (P-105)."""
    return Disk(
        segment_bytes=segment_bytes(store),
        buffer_bytes=config.buffer_bytes,
        preallocate=config.preallocate,
        verify=config.checksum,
        open_files=FEW_OPEN_FILES if few_files else MAX_OPEN_FILES,
    )


def settings_of(plan: StorePlan, log: Write, *, new: bool = False, trace: Path | None = None) -> StoreSettings:
    """What a store is started with."""
    kinds = {topic.rule.repository.kind for topic in plan.topics}
    few_files = RepositoryType.REDUCED_FD in kinds and RepositoryType.DISK not in kinds
    seed = int.from_bytes(os.urandom(8), "big")
    return StoreSettings(
        address.join(plan.host, plan.port),
        plan.cache_directory,
        attrs.evolve(plan.config, seed=seed),
        trace,
        disk_of(plan.disk, plan.config, few_files),
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
    """What each store of a daemon is started with."""
    return [settings_of(store, log, new=new, trace=trace) for store in plan.stores]
