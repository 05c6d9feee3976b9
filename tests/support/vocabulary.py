"""Hypothesis strategies for the messages between endpoints."""

from ipaddress import IPv4Address

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


WISHES = st.just(m.Wishes()) | st.builds(
    m.Wishes,
    size_threshold=U64,
    size_limit=U64,
    disk_limit=U64,
    flight_messages=U64,
    flight_bytes=U64,
    write_delay_ms=st.just(m.UNSET) | U32,
    ack_on_reception=st.booleans(),
)
REGISTERS = st.builds(
    m.Register,
    role=CLIENTS,
    store_index=INDEXES,
    generation=GENERATIONS,
    reg_id=U32,
    incarnation=INCARNATIONS,
    source_reg_id=U32,
    topic=TOPICS,
    session_id=U64,
    reply_to=addresses(),
    transport=st.just("") | addresses(),
    activity_timeout_ms=U32,
    state_lifetime_ms=U32,
    context=U64,
    pace=st.sampled_from(m.Pace),
    wishes=WISHES,
    wants_proxy=st.booleans(),
    election=st.none() | st.builds(m.ElectionToken, value=U32, store_index=st.integers(0, 255)),
    known_generation=st.just(0) | U64,
)
LIVES = st.lists(st.tuples(INCARNATIONS, U32), max_size=64).map(tuple)
STORES = st.builds(
    m.StoreEntry,
    index=st.integers(0, 65_535),
    group=st.integers(0, 255),
    address=addresses(),
    source_reg_id=U32,
    version=U32,
    generation=st.just(0) | U64,
)
REQUESTS = st.builds(
    m.RetransmitRequest,
    by=st.sampled_from([m.Role.STORE, m.Role.RECEIVER]),
    incarnation=INCARNATIONS,
    source_reg_id=U32,
    request=U32,
    first=U32,
    last=U32,
    reply_to=addresses(),
).map(
    lambda r: (
        r
        if r.by is m.Role.RECEIVER
        else m.RetransmitRequest(r.by, r.incarnation, 0, r.request, r.first, r.last, r.reply_to)
    )
)
ACKNOWLEDGEMENTS: st.SearchStrategy[m.StableAck | m.ConsumptionAck] = st.one_of(
    st.builds(m.StableAck, store_index=INDEXES, incarnation=INCARNATIONS, first=U32, last=U32, nack=st.booleans()),
    st.builds(
        m.ConsumptionAck,
        incarnation=INCARNATIONS,
        source_reg_id=U32,
        receiver_reg_id=U32,
        number=U32,
        flags=st.sampled_from(m.AckFlag),
        session_id=st.just(0) | U64,
        first=st.just(m.FROM_THE_START) | U32,
    ),
)
KEEPALIVES: st.SearchStrategy[m.Keepalive] = st.builds(
    m.Keepalive,
    role=st.sampled_from(m.Role),
    incarnation=INCARNATIONS,
    reg_id=U32,
    respond=st.booleans(),
    store_index=st.just(-1) | INDEXES,
)
MESSAGES: st.SearchStrategy[m.Message] = st.one_of(
    REGISTERS,
    st.builds(
        m.Registered,
        role=CLIENTS,
        store_index=INDEXES,
        generation=GENERATIONS,
        reg_id=U32,
        incarnation=INCARNATIONS,
        old=st.booleans(),
        low=U32,
        high=U32,
        activity_timeout_ms=U32,
        state_lifetime_ms=U32,
        term=U32,
        lives=LIVES,
        lives_term=U32,
        no_cache=st.booleans(),
        pace=st.sampled_from(m.Pace),
        memory=st.sampled_from(m.StoreMemory),
        known=st.none() | U32,
        store_generation=st.just(0) | U64,
        peers=st.lists(st.tuples(st.integers(0, 65_535), addresses(), st.integers(1, (1 << 64) - 1)), max_size=3).map(
            tuple
        ),
    ),
    st.builds(
        m.Refused,
        role=CLIENTS,
        store_index=INDEXES,
        generation=GENERATIONS,
        reg_id=U32,
        incarnation=INCARNATIONS,
        reason=st.sampled_from(m.Refusal),
        held_ms=st.just(0) | U32,
    ),
    st.builds(
        m.Deregister,
        role=CLIENTS,
        store_index=INDEXES,
        generation=GENERATIONS,
        reg_id=U32,
        incarnation=INCARNATIONS,
        source_reg_id=U32,
        reply_to=addresses(),
    ),
    st.builds(
        m.Deregistered,
        role=CLIENTS,
        store_index=INDEXES,
        generation=GENERATIONS,
        reg_id=U32,
        incarnation=INCARNATIONS,
        number=U32,
    ),
    ACKNOWLEDGEMENTS,
    st.builds(m.ReceiverAlive, incarnation=INCARNATIONS, receiver_reg_id=U32, session_id=U64, context=U64),
    REQUESTS,
    KEEPALIVES,
    st.builds(
        m.SourceInfo,
        incarnation=INCARNATIONS,
        topic=TOPICS,
        version=U32,
        low=U32,
        high=U32,
        request=addresses(),
        group_sizes=st.lists(st.integers(0, 65_535), max_size=5).map(tuple),
        confirmations=st.booleans(),
        stores=st.lists(STORES, max_size=9).map(tuple),
        term=U32,
        lives=LIVES,
        late_join=st.booleans(),
        founding=st.booleans(),
    ),
    st.builds(m.SourceInfoRequest, incarnation=INCARNATIONS),
    st.builds(m.LateJoinRequest, incarnation=INCARNATIONS, request=U32, reply_to=addresses()),
    st.builds(
        m.LateJoinInfo,
        incarnation=INCARNATIONS,
        request=U32,
        low=U32,
        high=U32,
        store_index=st.integers(m.ANY_STORE, 0x7FFF),
    ),
)
"""Strategy for every message of the core's vocabulary."""
