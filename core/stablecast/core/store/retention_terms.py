"""The terms of a repository: the store's configuration and the source's wishes.

The first registration decides, for as long as the RegID lives (P-598): kind, pace, sizes, delays. A wish within the
store's maxima is granted; a larger one refuses the registration (P-562, P-592, P-593; U13). A client that registers
again must ask for the same (P-569); only addresses and transports may change.

    registers                               no repository yet        paced one   source-paced one
    a source, paced                         granted if allowed (*)   granted     refused
    a source, not paced                     granted, source-paced    refused     granted
    a receiver, paced (blocking or not)     -                        granted     refused
    a receiver, not paced                   -                        refused     granted

(*) by repository-allow-receiver-paced-persistence. Clients older than receiver pacing look like those that do not ask
for it (P-573, P-575). A client that asks a store older than it finds no answer to that (P-574).
"""

from functools import cached_property

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.messages import UNSET, Pace, Register, Role, Wishes
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType
from stablecast.core.store.extents import OVERHEAD_BYTES

MAX_NUMBERS = (1 << 31) - 1
"""Numbers that one repository may span (P-127): more would be ambiguous on the wire."""

_ON_DISK = (RepositoryType.DISK, RepositoryType.REDUCED_FD)


@attrs.frozen
class Terms:
    """Sizes in bytes, spans in ns, 0 is none. A paced repository counts payload only (P-128)."""

    kind: RepositoryType = RepositoryType.DISK
    pace: Pace = Pace.SOURCE
    size_threshold: int = 0
    size_limit: int = 0
    disk_limit: int = 0
    age_ns: int = 0
    ack_minimum: int = 1
    ack_interval_ns: int = 0
    forwarding: bool = False
    write_delay_ns: int = 0
    ack_on_reception: bool = False
    flight_messages: int = 0
    flight_bytes: int = 0

    @cached_property
    def paced(self) -> bool:
        """True if the receivers set the pace."""
        return self.pace is not Pace.SOURCE

    @cached_property
    def keeps(self) -> bool:
        """True if messages are kept at all."""
        return self.kind is not RepositoryType.NO_CACHE

    @cached_property
    def overhead(self) -> int:
        """Bytes that a message counts beside its payload (P-128)."""
        return 0 if self.paced else OVERHEAD_BYTES

    @cached_property
    def written(self) -> bool:
        """True if messages go to disk. Others count as stable at their reception, which is a weaker promise."""
        return self.kind in _ON_DISK and not self.ack_on_reception

    @property
    def capacity(self) -> int | None:
        """The bytes that may be kept at most, None: no limit."""
        limits = (self.size_limit, self.disk_limit if self.written else 0)
        return min((limit for limit in limits if limit), default=None)

    def on_disk(self) -> "Terms":
        """Return the terms of a repository whose messages were found on disk: it stays disk-backed (P-109)."""
        return self if self.kind in _ON_DISK else attrs.evolve(self, kind=RepositoryType.DISK)


def terms_of(config: RepositoryConfig, pace: Pace, wishes: Wishes) -> Terms:
    """Return the terms that follow from a store's configuration and wishes.

    A wish beyond the store's value counts only with pacing by receivers; elsewhere the store's value holds (P-111).
    """
    paced, on_disk = pace is not Pace.SOURCE, config.kind in _ON_DISK
    wishes = wishes if paced else _within(config, wishes)
    delay = config.write_delay_ns if wishes.write_delay_ms == UNSET else wishes.write_delay_ms * MILLISECOND
    return Terms(
        kind=config.kind,
        pace=pace,
        size_threshold=wishes.size_threshold or config.size_threshold,
        size_limit=wishes.size_limit or config.size_limit,
        disk_limit=wishes.disk_limit or config.disk_limit,
        age_ns=config.age_ns,
        ack_minimum=config.ack_minimum,
        ack_interval_ns=config.ack_interval_ns,
        forwarding=config.forwarding,
        write_delay_ns=delay if on_disk else 0,  # Nothing to delay in memory (P-581).
        ack_on_reception=paced and on_disk and wishes.ack_on_reception,
        flight_messages=wishes.flight_messages,
        flight_bytes=wishes.flight_bytes or config.flight_bytes_maximum,
    )


def acceptable(config: RepositoryConfig, request: Register, repairs: Repair) -> bool:
    """Return whether a source's first registration keeps within what the store allows."""
    return request.pace is Pace.SOURCE or (
        request.wishes == _within(config, request.wishes) and _may_be_paced(config, request, repairs)
    )


def _within(config: RepositoryConfig, wishes: Wishes) -> Wishes:
    """Return the wishes without those beyond the store's values: they are documented for pacing by receivers only."""
    late = wishes.write_delay_ms * MILLISECOND > config.write_delay_ns
    return attrs.evolve(
        wishes,
        size_threshold=_permitted(wishes.size_threshold, config.size_threshold),
        size_limit=_permitted(wishes.size_limit, config.size_limit),
        disk_limit=_permitted(wishes.disk_limit, config.disk_limit),
        write_delay_ms=UNSET if late else wishes.write_delay_ms,
    )


def _permitted(wish: int, maximum: int) -> int:
    return 0 if maximum and wish > maximum else wish


def consistent(pace: Pace, wishes: Wishes, request: Register) -> bool:
    """Return whether a client that registers again asks for the same; a proxy has no wishes of its own (P-569)."""
    if request.election is not None:
        return True
    # Without pacing by receivers, a wish that changed is passed over: the first registration has settled the terms.
    return request.pace is pace and (pace is Pace.SOURCE or request.wishes == wishes)


def fits(repository: Terms, request: Register) -> bool:
    """Return whether a receiver's way of pacing is that of the repository."""
    return request.role is Role.SOURCE or repository.paced is (request.pace is not Pace.SOURCE)


def _may_be_paced(config: RepositoryConfig, request: Register, repairs: Repair) -> bool:
    wishes = request.wishes
    if not config.allow_rpp or request.pace is not Pace.RECEIVERS or config.kind is RepositoryType.NO_CACHE:
        return False
    if wishes.ack_on_reception and not config.allow_ack_on_reception and config.kind in _ON_DISK:
        return False
    if wishes.flight_bytes > config.flight_bytes_maximum:
        return False
    terms = terms_of(config, request.pace, wishes)
    # A store with less room than one flight would never acknowledge anything (formal design, 7.8).
    return Repair.PACED not in repairs or terms.capacity is None or terms.flight_bytes <= terms.capacity
