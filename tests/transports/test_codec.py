"""Core messages survive the wire, and nothing that comes from the wire raises anything but the one error."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core import messages as m
from stablecast.transports import codec
from stablecast.transports.codec.lives import SUBTYPE, decode_lives
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.errors import WireError

U32 = st.integers(0, 0xFFFF_FFFF)
INCARNATIONS = st.integers(0, (1 << 64) - 1)
INDEXES = st.integers(0, 0x7FFF)
GENERATIONS = st.integers(0, m.GENERATIONS - 1)
CLIENTS = st.sampled_from([m.Role.SOURCE, m.Role.RECEIVER])
TOPICS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    return f"{IPv4Address(draw(U32))}:{draw(st.integers(0, 65_535))}"


REGISTERS = st.builds(
    m.Register,
    role=CLIENTS,
    store_index=INDEXES,
    generation=GENERATIONS,
    reg_id=U32,
    incarnation=INCARNATIONS,
    source_reg_id=U32,
    topic=TOPICS,
    session_id=st.integers(0, (1 << 64) - 1),
    reply_to=addresses(),
    transport=st.just("") | addresses(),
    activity_timeout_ms=U32,
    state_lifetime_ms=U32,
    context=st.integers(0, (1 << 64) - 1),
)
LIVES = st.lists(st.tuples(INCARNATIONS, U32), max_size=64).map(tuple)
STORES = st.builds(
    m.StoreEntry,
    index=st.integers(0, 65_535),
    group=st.integers(0, 255),
    address=addresses(),
    source_reg_id=U32,
    version=U32,
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
    ),
    st.builds(
        m.Refused,
        role=CLIENTS,
        store_index=INDEXES,
        generation=GENERATIONS,
        reg_id=U32,
        incarnation=INCARNATIONS,
        reason=st.sampled_from(m.Refusal),
    ),
    st.builds(m.StableAck, store_index=INDEXES, incarnation=INCARNATIONS, first=U32, last=U32),
    st.builds(m.ConsumptionAck, incarnation=INCARNATIONS, source_reg_id=U32, receiver_reg_id=U32, number=U32),
    REQUESTS,
    st.builds(
        m.Keepalive,
        role=st.sampled_from(m.Role),
        incarnation=INCARNATIONS,
        reg_id=U32,
        respond=st.booleans(),
        store_index=st.just(-1) | INDEXES,
    ),
    st.builds(
        m.SourceInfo,
        incarnation=INCARNATIONS,
        topic=TOPICS,
        version=U32,
        low=U32,
        high=U32,
        request=addresses(),
        group_size=st.integers(0, 65_535),
        confirmations=st.booleans(),
        stores=st.lists(STORES, max_size=9).map(tuple),
        term=U32,
        lives=LIVES,
    ),
    st.builds(m.SourceInfoRequest, incarnation=INCARNATIONS),
    st.builds(m.LateJoinRequest, incarnation=INCARNATIONS, request=U32, reply_to=addresses()),
    st.builds(m.LateJoinInfo, incarnation=INCARNATIONS, request=U32, low=U32, high=U32),
)


@given(MESSAGES)
def test_a_message_survives_the_wire(message: m.Message) -> None:
    decoded, end = lbmc.decode(data := codec.encode(message))
    assert end == len(data)
    assert codec.decode(decoded) == message


@given(st.binary(max_size=400))
def test_arbitrary_bytes_raise_only_the_one_error(data: bytes) -> None:
    try:
        message, _ = lbmc.decode(data)
        codec.decode(message)
    except WireError:
        return


@given(MESSAGES, st.data())
def test_mutated_messages_raise_only_the_one_error(message: m.Message, data: st.DataObject) -> None:
    raw = bytearray(codec.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        codec.decode(lbmc.decode(bytes(raw))[0])
    except WireError:
        return


@given(INCARNATIONS, INCARNATIONS, U32, st.binary(max_size=2000))
def test_a_retransmission_survives_the_wire(session: int, sender: int, number: int, payload: bytes) -> None:
    recovered = codec.Recovered(session, sender, number, payload)
    message, _ = lbmc.decode(codec.encode_recovered(recovered))
    assert message.kind == lbmc.MessageKind.RETRANSMISSION
    assert message.topic_index == codec.split(sender)[1]
    assert codec.decode_recovered(message) == recovered


def test_the_greeting_names_the_session() -> None:
    message, _ = lbmc.decode(codec.greeting(0x1234_5678))
    assert codec.session_of(message) == 0x1234_5678
    assert codec.session_of(lbmc.Message(lbmc.MessageKind.DATA)) is None


def control(*headers: h.Header) -> lbmc.Message:
    return lbmc.Message(lbmc.MessageKind.CONTROL, headers=headers)


@pytest.mark.parametrize(
    "message",
    [
        lbmc.Message(lbmc.MessageKind.DATA, 1, 2, (), b"x"),
        control(h.StoreId(flags=1)),
        control(h.Ack(type=7, transport_idx=1, id_2=2, rcv_reg_id=3, seqnum=4)),
        control(h.Keepalive(type=9, transport_idx=1, topic_idx=2, reg_id=3)),
        control(h.Sri(version=1, low_sqn=0, high_sqn=0)),
        control(
            h.PregResp(code=0x20 | 15, reg_id=1, transport_idx=1, topic_idx=1, low_seqnum=0, high_seqnum=0),
            h.StoreId(flags=0),
        ),
        control(
            h.Preg(reg_id=1, transport_idx=1, topic_idx=1, resp_port=1, resp_ip="127.0.0.1"),
            h.StoreId(flags=0),
            h.TopicName(topic="t"),
            h.ClientLifetime(activity_tmo=0, lifetime=0),
            h.Otid(otid=b"\x10" + bytes(31)),
        ),
    ],
)
def test_what_means_nothing_is_refused(message: lbmc.Message) -> None:
    with pytest.raises(WireError):
        codec.decode(message)


def test_a_retransmission_without_incarnations_is_refused() -> None:
    with pytest.raises(WireError):
        codec.decode_recovered(lbmc.Message(lbmc.MessageKind.RETRANSMISSION, 1, 2, (), b"x"))


def test_a_bare_acknowledgement_speaks_for_one_number() -> None:
    """Peers that know no ranges acknowledge one number at a time."""
    ack = h.Ack(type=h.Ack.STABLE, transport_idx=1, id_2=2, rcv_reg_id=0, seqnum=4)
    assert codec.decode(control(ack, h.StoreId(flags=3))) == m.StableAck(3, codec.join(1, 2), 4, 4)


@pytest.mark.parametrize(
    "options",
    [
        [h.ExtendedOption(subtype=SUBTYPE, data=b"short")],
        [h.ExtendedOption(subtype=SUBTYPE, data=bytes(9))],
        [h.ExtendedOption(subtype=SUBTYPE, data=bytes(8)), h.ExtendedOption(subtype=SUBTYPE, data=bytes(12))],
    ],
)
def test_a_history_that_does_not_fit_together_is_refused(options: list[h.Header]) -> None:
    with pytest.raises(WireError):
        decode_lives(control(*options))


def test_other_extended_options_are_not_a_history() -> None:
    assert decode_lives(control(h.ExtendedOption(subtype=257, data=b"selector"))) == (0, (), 0)
