"""Hypothesis strategies for the messages between endpoints."""

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from stablecast.core.protocol import messages as m

U32 = st.integers(0, 0xFFFF_FFFF)
INCARNATIONS = st.integers(0, (1 << 64) - 1)
U64 = INCARNATIONS
INDEXES = st.integers(0, 0x7FFF)
GENERATIONS = st.integers(0, m.GENERATIONS - 1)
CLIENTS = st.sampled_from([m.Role.SOURCE, m.Role.RECEIVER])
TOPICS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    return f"{IPv4Address(draw(U32))}:{draw(st.integers(0, 65_535))}"


LIVES = st.lists(st.tuples(INCARNATIONS, U32), max_size=64).map(tuple)
FLAGS = st.booleans()
FIELDS: Final[Mapping[str, st.SearchStrategy[Any]]] = (
    {"role": CLIENTS, "store_index": INDEXES, "generation": GENERATIONS, "incarnation": INCARNATIONS}
    | {"topic": TOPICS, "reply_to": addresses(), "session_id": U64, "context": U64, "lives": LIVES}
    | {"pace": st.sampled_from(m.Pace), "low": U32, "high": U32, "first": U32, "last": U32, "number": U32, "term": U32}
    | dict.fromkeys(("reg_id", "source_reg_id", "receiver_reg_id", "request", "version", "lives_term"), U32)
    | dict.fromkeys(("activity_timeout_ms", "state_lifetime_ms"), U32)
    | dict.fromkeys(("size_threshold", "size_limit", "disk_limit", "flight_messages", "flight_bytes"), U64)
    | dict.fromkeys(("old", "no_cache", "nack", "respond", "wants_proxy", "ack_on_reception"), FLAGS)
    | dict.fromkeys(("confirmations", "late_join", "founding"), FLAGS)
)
"""The values of a field in all messages that have it, unless a message says otherwise."""

KindT = TypeVar("KindT")


def of(kind: type[KindT], names: str, **own: st.SearchStrategy[Any]) -> st.SearchStrategy[KindT]:
    """Build messages with these fields; `own` have values of their own."""
    return st.builds(kind, **{name: FIELDS[name] for name in names.split()}, **own)


REGISTRATION: Final = "role store_index generation reg_id incarnation"
TIMES: Final = "activity_timeout_ms state_lifetime_ms"
WISHES = st.just(m.Wishes()) | of(
    m.Wishes,
    "size_threshold size_limit disk_limit flight_messages flight_bytes ack_on_reception",
    write_delay_ms=st.just(m.UNSET) | U32,
)
REGISTERS = of(
    m.Register,
    f"{REGISTRATION} source_reg_id topic session_id reply_to {TIMES} context pace wants_proxy",
    transport=st.just("") | addresses(),
    wishes=WISHES,
    election=st.none() | st.builds(m.ElectionToken, value=U32, store_index=st.integers(0, 255)),
    known_generation=st.just(0) | U64,
)
STORES = of(
    m.StoreEntry,
    "source_reg_id version",
    index=st.integers(0, 65_535),
    group=st.integers(0, 255),
    address=addresses(),
    generation=st.just(0) | U64,
)
REQUESTS = of(
    m.RetransmitRequest,
    "incarnation source_reg_id request first last reply_to",
    by=st.sampled_from([m.Role.STORE, m.Role.RECEIVER]),
).map(
    lambda r: (
        r
        if r.by is m.Role.RECEIVER
        else m.RetransmitRequest(r.by, r.incarnation, 0, r.request, r.first, r.last, r.reply_to)
    )
)
ACKNOWLEDGEMENTS: st.SearchStrategy[m.StableAck | m.ConsumptionAck] = st.one_of(
    of(m.StableAck, "store_index incarnation first last nack"),
    of(
        m.ConsumptionAck,
        "incarnation source_reg_id receiver_reg_id number",
        flags=st.sampled_from(m.AckFlag),
        session_id=st.just(0) | U64,
        first=st.just(m.FROM_THE_START) | U32,
    ),
)
KEEPALIVES = of(
    m.Keepalive,
    "incarnation reg_id respond",
    role=st.sampled_from(m.Role),
    store_index=st.just(-1) | INDEXES,
)
PEERS = st.lists(st.tuples(st.integers(0, 65_535), addresses(), st.integers(1, (1 << 64) - 1)), max_size=3).map(tuple)
MESSAGES: st.SearchStrategy[m.Message] = st.one_of(
    REGISTERS,
    of(
        m.Registered,
        f"{REGISTRATION} old low high {TIMES} term lives lives_term no_cache pace",
        memory=st.sampled_from(m.StoreMemory),
        known=st.none() | U32,
        store_generation=st.just(0) | U64,
        peers=PEERS,
    ),
    of(m.Refused, REGISTRATION, reason=st.sampled_from(m.Refusal), held_ms=st.just(0) | U32),
    of(m.Deregister, f"{REGISTRATION} source_reg_id reply_to"),
    of(m.Deregistered, f"{REGISTRATION} number"),
    ACKNOWLEDGEMENTS,
    of(m.ReceiverAlive, "incarnation receiver_reg_id session_id context"),
    REQUESTS,
    KEEPALIVES,
    of(
        m.SourceInfo,
        "incarnation topic version low high confirmations term lives late_join founding",
        request=addresses(),
        group_sizes=st.lists(st.integers(0, 65_535), max_size=5).map(tuple),
        stores=st.lists(STORES, max_size=9).map(tuple),
    ),
    of(m.SourceInfoRequest, "incarnation"),
    of(m.LateJoinRequest, "incarnation request reply_to"),
    of(m.LateJoinInfo, "incarnation request low high", store_index=st.integers(m.ANY_STORE, 0x7FFF)),
)
"""Strategy for every message of the core's vocabulary."""
