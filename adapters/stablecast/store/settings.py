"""What a store is started with."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from stablecast.config.option_kinds import Value
from stablecast.config.plan import StoreLimits
from stablecast.config.transport_options import TransportConfig
from stablecast.core.protocol.settings import StoreConfig
from stablecast.store.journal import DISK, Disk
from stablecast.store.log_lines import Write, unheard
from stablecast.store.recovered_state import everything


def no_options(_topic: str) -> Mapping[str, Value]:
    """Proxies have no options of their own."""
    return {}


@attrs.frozen
class StoreSettings:
    """Where a store listens and keeps its files, and what it is for.

    Attributes:
        listen: `ip:port`; port 0: any, or the first free one of `ports`.
        directory: Of its journal (disk-cache-directory).
        config: None takes the defaults.
        trace: Where it records a trace.
        disk: How it writes and reads.
        new: Whether an empty directory is that of a new store, not one whose files are gone (formal design, 7.6).
        resolver: Relays, `ip:port`, through which its proxies make themselves found.
        resolver_service: Services, `host:port`, likewise.
        resolution: Options of resolution beside them: multicast, and its pace.
        name: Of the store, for people.
        context_name: Of the store, for sources that look for it through the relays; empty: it has none.
        state_directory: Where it notes that it was here (`identity`); None: in `directory`.
        reads: Disk reads for one source at one time (repository-disk-max-read-async-cbs).
        limits: What it takes at most.
        log: Told what people should know.
        proxy_options: Source options of the proxies of a topic.
        transports: How it receives from sources over LBT-RM and LBT-RU.
        restore_last_ns: Of a topic: how far back from its newest a source's messages are restored; 0: all.
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
