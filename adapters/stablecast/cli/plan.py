"""Add up the memory, disk space and descriptors that stores need, for `stablecast plan` (P-033)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stablecast.config import client_files
from stablecast.config.capacity import Load, PatternNeed, StoreNeed, need_of
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.config.plan import StoreLimits, StorePlan
from stablecast.config.plan_assembly import load as load_plan
from stablecast.config.profiles import profile
from stablecast.core.protocol.settings import RepositoryConfig, SourceConfig
from stablecast.text import plural
from stablecast.text.console import note, say
from stablecast.text.exit_status import FAILED

MEGABYTE = 1 << 20
"""The unit of the size options, in bytes."""

UNITS = ("MB", "GB", "TB", "PB")
"""Units of the sums of the guide."""

STEP = 1000
"""The factor between two of them: in the guide, 1,000 repositories of 48 MB take 48 GB."""


def run(files: Sequence[Path], load: Load, profile_name: str, as_json: bool) -> int:
    """Print what each store needs for the load; return 1 if a limit of a store is below it.

    Raises what reading the files raises.
    """
    kinds = {path: kind_of(path) for path in files}
    plans = [load_plan(path, profile_name) for path in files if kinds[path] is FileKind.DAEMON]
    named = [path for path in files if kinds[path] is FileKind.CLIENT]
    sources = [client_files.load_clients(path, profile_name)[0].source for path in named]
    found = [(_of_store(store, load, sources), store.limits) for plan in plans for store in plan.stores]
    if not found:
        repository = profile(profile_name).store.repository or RepositoryConfig()
        found = [(StoreNeed("default", (need_of(".*", repository, load, sources),)), StoreLimits())]
    exceeded = [text for need, limits in found for text in _exceeded(need, limits)]
    for need, _ in found:
        for line in [_as_object(need)] if as_json else _lines(need):
            say(line)
    for text in exceeded:
        note(text)
    return FAILED if exceeded else 0


def _of_store(store: StorePlan, load: Load, sources: Sequence[SourceConfig]) -> StoreNeed:
    needs = [need_of(topic.rule.pattern, topic.rule.repository, load, sources) for topic in store.topics]
    return StoreNeed(store.name, tuple(needs))


def _exceeded(need: StoreNeed, limits: StoreLimits) -> Iterator[str]:
    if need.sources > limits.sources:
        yield f'store "{need.name}" registers at most {limits.sources:,} sources: raise its limit, or use more stores'
    if need.clients > limits.clients:
        yield f'store "{need.name}" registers at most {limits.clients:,} clients: raise its limit, or use more stores'
    if limits.disk_bytes and need.disk_bytes > limits.disk_bytes:
        yield f'store "{need.name}" may use {_size(limits.disk_bytes)} of disk, less than these sources may'


def _lines(need: StoreNeed) -> Iterator[str]:
    yield f'store "{need.name}": {plural(need.sources, "source")}, {plural(need.clients, "client")}'
    for one in need.needs:
        sources = f"{one.load.sources:,}"
        memory = f"memory {_size(one.memory_each)} x {sources} = {_size(one.memory_bytes)}"
        disk = f"disk {_size(one.disk_each)} x {sources} = {_size(one.disk_bytes)}"
        yield f'  topics "{one.pattern}" ({_kind(one)}): {memory}; {disk}'
    yield f"  together: memory {_size(need.memory_bytes)}, disk {_size(need.disk_bytes)}"
    yield (
        f"  descriptors: {need.descriptors:,} here with the connections of all clients (limit NOFILE); the guide counts"
        f" {need.guide_descriptors:,} for files"
    )


def _kind(need: PatternNeed) -> str:
    return need.kind.name.lower().replace("_", "-")


def _as_object(need: StoreNeed) -> dict[str, object]:
    patterns = [
        {
            "pattern": one.pattern,
            "type": _kind(one),
            "sources": one.load.sources,
            "memory_bytes": one.memory_bytes,
            "disk_bytes": one.disk_bytes,
        }
        for one in need.needs
    ]
    return {
        "store": need.name,
        "sources": need.sources,
        "clients": need.clients,
        "memory_bytes": need.memory_bytes,
        "disk_bytes": need.disk_bytes,
        "descriptors": need.descriptors,
        "guide_descriptors": need.guide_descriptors,
        "patterns": patterns,
    }


def _size(octets: int) -> str:
    """Return bytes as the guide counts them: MB of 2^20 bytes, and GB of 1,000 MB.

    >>> _size(48 << 20), _size(1000 * (48 << 20)), _size(1 << 19)
    ('48 MB', '48 GB', '0.5 MB')
    """
    value, unit = octets / MEGABYTE, 0
    while value >= STEP and unit < len(UNITS) - 1:
        value, unit = value / STEP, unit + 1
    return f"{value:.1f}".removesuffix(".0") + f" {UNITS[unit]}"
