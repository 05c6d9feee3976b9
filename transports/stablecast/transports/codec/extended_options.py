"""Extended options of our own: data that the public headers have no place for. Unaware peers may ignore them.

Data that exceed one header continue in the next header of the same subtype. The headers are not marked as fragments,
because public dissectors call an option malformed if it comes in more than two.

A *history* holds term (32 bits), term of the history (32 bits), then each life as incarnation (64 bits) and first
number (32 bits).

The *memory* of a store that lost its records, or that is new, completes PREG_RESP. The data begin with what the store
knows of the time before its records (8 bits), a byte of flags, and two reserved bytes. The last number that the store
knows to be used although it does not hold it follows (32 bits). A store that kept its memory sends none. To a receiver
the number is the first that the store lacks below its offer.

*Generations* of stores complete PREG, PREG_RESP and SRI. The generation of the store itself, or the newest that the
client knows of it, comes first (64 bits, 0 in an SRI). Other stores follow: index in the configuration of the source
(16 bits), port (16), IPv4 address (32), generation (64). A message without generations has no such option. If one of
these stores lies in another domain, a further option has the domain of each of them (32 bits), in the same order.

The *terms* of a repository complete the public flag of PREG and PREG_RESP. Their layouts have no place for sizes, which
a source may ask for at either pace, and none for the receiver that never blocks. The data begin with a byte of flags,
three reserved bytes, and the write delay in ms (32 bits). Threshold, limit and disk limit in bytes follow, then the
flight size in messages and in bytes (64 bits each). A message whose flag says everything has no terms.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address

from stablecast.core.protocol.generations import Known
from stablecast.core.protocol.messages import UNSET, Life, Pace, StoreMemory, Wishes
from stablecast.transports.codec.domains import join_domain, split_domain
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

HISTORY = 0x5343
"""Subtype of a history; the public subtypes are 256 and 257."""
TERMS = 0x5350
"""Subtype of the terms of a repository."""

MEMORY = 0x534D
"""Subtype of the memory of a store."""

GENERATIONS = 0x5347
"""Subtype of the generations of stores."""

DOMAINS = 0x5344
"""Subtype of the domains of these stores."""

HISTORY_TERMS = struct.Struct(">II")
LIFE = struct.Struct(">QI")
PACE = struct.Struct(">B3xI5Q")
RECORDS = struct.Struct(">BB2xI")
GENERATION = struct.Struct(">Q")
DOMAIN = struct.Struct(">I")
KNOWN_GENERATION = struct.Struct(">HH4sQ")
KNOWS = 0x01
"""The field of the known number is valid."""
FOUNDING = 0x01
"""In place of the term of a history's announcer, which an SRI does not have: no store knew of an older life."""
NON_BLOCKING = 0x01
ACK_ON_RECEPTION = 0x02
PACED = 0x08
WRITE_DELAY = 0x04
"""The field of the delay is valid."""

MAX_ADDRESSES = 4_096
"""Addresses of stores that are kept in both forms. Each answer names all stores again."""

FLAGS = h.ExtendedOption.IGNORE | h.ExtendedOption.IGNORE_SUBTYPE


def encode_option(subtype: int, data: bytes) -> tuple[h.Header, ...]:
    """Return the headers of an option; none if there are no data."""
    size = h.ExtendedOption.MAX_DATA
    pieces = (data[offset : offset + size] for offset in range(0, len(data), size))
    return tuple(h.ExtendedOption(flags=FLAGS, subtype=subtype, data=piece) for piece in pieces)


def find_option(message: lbmc.Message, subtype: int) -> bytes:
    """Return the data of an option; empty if the message has none."""
    found = [one.data for one in message.headers if isinstance(one, h.ExtendedOption) and one.subtype == subtype]
    return b"".join(found)


def encode_lives(term: int, lives_term: int, lives: tuple[Life, ...]) -> tuple[h.Header, ...]:
    """Return the headers of a history; none if it is empty."""
    if not term and not lives_term and not lives:
        return ()
    return encode_option(HISTORY, HISTORY_TERMS.pack(term, lives_term) + b"".join(LIFE.pack(*life) for life in lives))


def decode_lives(message: lbmc.Message) -> tuple[int, tuple[Life, ...], int]:
    """Return term, history, and the term of the history; zeros if the message has none. Raises WireError."""
    data = find_option(message, HISTORY)
    if not data:
        return (0, (), 0)
    if len(data) < HISTORY_TERMS.size or (len(data) - HISTORY_TERMS.size) % LIFE.size:
        raise WireError(f"a history cannot have {len(data)} bytes")
    term, lives_term = HISTORY_TERMS.unpack_from(data)
    history = tuple((incarnation, first) for incarnation, first in LIFE.iter_unpack(data[HISTORY_TERMS.size :]))
    return (term, history, lives_term)


def encode_memory(memory: StoreMemory, known: int | None) -> tuple[h.Header, ...]:
    """Return the header with what a store knows; none if it kept its memory and holds all that it knows."""
    if memory is StoreMemory.KEPT and known is None:
        return ()
    return encode_option(MEMORY, RECORDS.pack(memory, 0 if known is None else KNOWS, known or 0))


def decode_memory(message: lbmc.Message) -> tuple[StoreMemory, int | None]:
    """Return what a store knows, and the last number it knows to be used. Raises WireError for malformed data."""
    data = find_option(message, MEMORY)
    if not data:
        return (StoreMemory.KEPT, None)
    if len(data) != RECORDS.size:
        raise WireError(f"the memory of a store cannot have {len(data)} bytes")
    memory, flags, known = RECORDS.unpack(data)
    # A later release may know more kinds. A store that reports one of them does not claim to have kept its memory.
    kind = StoreMemory(memory) if memory in set(StoreMemory) else StoreMemory.LOST
    return (kind, known if flags & KNOWS else None)


def encode_generations(own: int, others: Iterable[Known] = ()) -> tuple[h.Header, ...]:
    """Return the headers with generations; none if all are 0."""
    known = tuple(others)
    if not own and not any(generation for _, _, generation in known):
        return ()
    found = encode_option(GENERATIONS, GENERATION.pack(own) + b"".join(_known_generation(*one) for one in known))
    domains = [split_domain(address)[0] for _, address, _ in known]
    return found + encode_option(DOMAINS, b"".join(map(DOMAIN.pack, domains))) if any(domains) else found


def _known_generation(index: int, address: str, generation: int) -> bytes:
    return KNOWN_GENERATION.pack(index, *_place(address), generation)


@lru_cache(maxsize=MAX_ADDRESSES)
def _place(address: str) -> tuple[int, bytes]:
    host, _, port = split_domain(address)[1].rpartition(":")
    return int(port), IPv4Address(host).packed


@lru_cache(maxsize=MAX_ADDRESSES)
def _address(host: bytes, port: int) -> str:
    return f"{IPv4Address(host)}:{port}"


def decode_generations(message: lbmc.Message) -> tuple[int, tuple[Known, ...]]:
    """Return the store's own generation and those of others; (0, ()) if there are none. Raises WireError."""
    data = find_option(message, GENERATIONS)
    if not data:
        return (0, ())
    if len(data) < GENERATION.size or (len(data) - GENERATION.size) % KNOWN_GENERATION.size:
        raise WireError(f"generations cannot have {len(data)} bytes")
    others = KNOWN_GENERATION.iter_unpack(data[GENERATION.size :])
    found = tuple((index, _address(host, port), generation) for index, port, host, generation in others)
    numbers = find_option(message, DOMAINS)
    if numbers:
        if len(numbers) != DOMAIN.size * len(found):
            raise WireError(f"{len(found)} stores cannot have domains of {len(numbers)} bytes")
        domains = (domain for (domain,) in DOMAIN.iter_unpack(numbers))
        places = zip(domains, found, strict=True)
        found = tuple((index, join_domain(domain, at), known) for domain, (index, at, known) in places)
    return (GENERATION.unpack_from(data)[0], found)


def encode_pace(pace: Pace, wishes: Wishes) -> tuple[h.Header, ...]:
    """Return the header with the terms that the public flag cannot express; none if there are no such terms."""
    if pace is not Pace.NON_BLOCKING and wishes == Wishes():
        return ()
    return encode_permitted(pace, wishes)


def encode_permitted(pace: Pace, wishes: Wishes) -> tuple[h.Header, ...]:
    """Return the header with all terms, for a refusal, which has no public flag for them."""
    flags = NON_BLOCKING if pace is Pace.NON_BLOCKING else PACED if pace is Pace.RECEIVERS else 0
    flags |= ACK_ON_RECEPTION if wishes.ack_on_reception else 0
    delay = 0
    if wishes.write_delay_ms != UNSET:
        flags |= WRITE_DELAY
        delay = wishes.write_delay_ms
    data = PACE.pack(
        flags,
        delay,
        wishes.size_threshold,
        wishes.size_limit,
        wishes.disk_limit,
        wishes.flight_messages,
        wishes.flight_bytes,
    )
    return encode_option(TERMS, data)


def decode_permitted(message: lbmc.Message) -> tuple[Pace, Wishes | None]:
    """Return the terms that a refusal states; None without them. Raises WireError for malformed data."""
    data = find_option(message, TERMS)
    pace, wishes = decode_pace(message, bool(data) and bool(data[0] & PACED))
    return pace, wishes if data else None


def decode_pace(message: lbmc.Message, paced: bool) -> tuple[Pace, Wishes]:
    """Return pace and wishes of a message whose public flag is `paced`. Raises WireError for malformed data."""
    pace = Pace.RECEIVERS if paced else Pace.SOURCE
    data = find_option(message, TERMS)
    if not data:
        return pace, Wishes()
    if len(data) != PACE.size:
        raise WireError(f"the terms of a repository cannot have {len(data)} bytes")
    flags, delay, threshold, limit, disk_limit, flight_messages, flight_bytes = PACE.unpack(data)
    return (
        Pace.NON_BLOCKING if flags & NON_BLOCKING else pace,
        Wishes(
            size_threshold=threshold,
            size_limit=limit,
            disk_limit=disk_limit,
            flight_messages=flight_messages,
            flight_bytes=flight_bytes,
            write_delay_ms=delay if flags & WRITE_DELAY else UNSET,
            ack_on_reception=bool(flags & ACK_ON_RECEPTION),
        ),
    )
