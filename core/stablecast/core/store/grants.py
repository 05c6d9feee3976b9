"""Admission to a store: who may register, where a receiver begins, and the contents of a grant.

A registration is refused, in this order: no pattern of the store matches its topic; a receiver's source is not the one
registered here; another client holds the RegID (`clients`); it does not fit the terms of the repository, or the terms
that the store allows for a new one (`retention_terms`).
"""

from stablecast.core.machine import serial
from stablecast.core.machine.units import milliseconds
from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.generations import NONE, Known
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.messages import Refusal, Register, Registered, Role, StoreMemory
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import ROLLBACK_ALL, StoreConfig, repository_for
from stablecast.core.store.clients import ClientRecord, ClientTable
from stablecast.core.store.repository import Repository
from stablecast.core.store.retention_terms import acceptable, consistent, fits


def verdict(
    request: Register,
    clients: ClientTable,
    source: Repository | None,
    config: StoreConfig,
    admitted: bool | None = None,
) -> ClientRecord | Refusal | None:
    """Return the client that may go on, None for a new one, or the cause of a refusal (T6, P-019).

    `source` is the repository that a receiver names.
    """
    kept = repository_for(config, request.topic)
    if kept is None:
        return Refusal.NO_PATTERN
    if request.role is Role.RECEIVER and (source is None or source.incarnation != request.incarnation):
        return Refusal.UNKNOWN_SOURCE
    found = clients.find(request, admitted)
    if isinstance(found, Refusal):
        return found
    if found is not None and not consistent(found.client.pace, found.client.wishes, request):
        return Refusal.INCOMPATIBLE
    if source is not None and not fits(source.terms, request):
        return Refusal.INCOMPATIBLE
    if found is None and request.role is Role.SOURCE and not acceptable(kept, request, config.repairs):
        return Refusal.INCOMPATIBLE
    return found


def first_number(request: Register, source: Repository, config: StoreConfig) -> int:
    """Return where a new receiver begins: `rollback` messages back (P-837), or at the trail if paced (P-564, C-34).

    Messages that the store lacks count as if they were here.
    """
    if source.terms.paced:
        return source.trail
    lacking = first_lacking(source)
    kept = repository_for(config, request.topic)
    rollback = ROLLBACK_ALL if kept is None else kept.rollback
    return max(source.trail if lacking is None else lacking, source.newest + 1 - rollback)


def grant(
    record: ClientRecord,
    owner: Client,
    source: Repository,
    generation: int,
    old: bool,
    store_generation: int = NONE,
    *,
    kept: bool = False,
) -> Registered:
    """Return the grant for the source of a repository (`owner`), or for one of its receivers.

    `kept`: the receiver was registered here before, so a paced repository has kept messages for it since then.
    """
    client = record.client
    own = client.role is Role.SOURCE
    low = source.trail if own else client.acknowledged + 1
    high = max(source.newest, low - 1) if own or source.terms.keeps else low - 1
    known = client.known if client.known > high else None
    if old and not own and high < low and _settled(source, client):
        known = high
    memory = client.memory
    if not own and not old and Repair.VOTE in source.repairs:
        lacking = None if source.terms.paced else first_lacking(source)
        known = None if lacking is None or low >= source.trail else max(low, lacking)
        low = low if known is None else source.trail
        memory = StoreMemory.KEPT if known is None and remembers(owner) else StoreMemory.LOST
        if kept and source.terms.paced and source.terms.keeps:
            known = kept_from(source, low)
    return Registered(
        client.role,
        client.store_index,
        generation,
        client.reg_id,
        client.incarnation,
        old,
        serial.wire(low),
        serial.wire(high),
        milliseconds(record.lifetime.activity_ns),
        milliseconds(record.lifetime.lifetime_ns),
        client.term,
        fold(source.life.lives) if own else (),
        source.life.term if own else 0,
        no_cache=not source.terms.keeps,
        pace=source.terms.pace if own else client.pace,
        memory=memory,
        known=None if known is None else serial.wire(known),
        store_generation=store_generation,
        peers=_peers(client),
    )


def _settled(source: Repository, receiver: Client) -> bool:
    """Return whether what a receiver acknowledged is cut back to the numbers of the life that it names."""
    current = source.resume_point is not None and source.incarnation == receiver.incarnation
    return current and Repair.ONE_LIFE in source.repairs


def first_lacking(source: Repository) -> int | None:
    """Return the first number that should be here, if all that is here is above it; None: it is not so.

    Holes between messages do not count: a receiver that begins below them asks for them.
    """
    told = source.resume_point is not None and source.terms.keeps and Repair.VOTE in source.repairs
    return source.first_own if told and source.first_own < source.trail else None


def kept_from(source: Repository, low: int) -> int:
    """Return the first number from `low` on that a store keeps or may still get. Above it, some may be lost."""
    return source.filling.lost.contiguous_from(max(low, source.trail))


def remembers(source: Client) -> bool:
    """Return whether a store cannot have forgotten receivers of this source.

    A source that had sent messages when it announced itself to a store without memory may have had receivers there.
    """
    return source.memory is StoreMemory.KEPT and source.known < 0


def _peers(client: Client) -> tuple[Known, ...]:
    """Return the generations of the other stores, as the source and its earlier lives announced them."""
    others = (one for one in client.stores if one.index != client.store_index)
    return tuple((one.index, one.address, one.generation) for one in others if one.generation)
