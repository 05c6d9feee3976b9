"""Core messages survive the wire, and malformed bytes raise WireError only."""

from itertools import pairwise
from pathlib import Path
from typing import get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol import messages as m
from stablecast.core.protocol.stored_contents import StoredAnswer, StoredQuestion
from stablecast.transports import codec
from stablecast.transports.codec import extended_options, lbttcp, stored_contents
from stablecast.transports.codec.domains import MAX_DOMAIN, from_domain
from stablecast.transports.codec.extended_options import encode_option, find_option
from stablecast.transports.codec.routed import Endpoint, routed
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc
from stablecast.transports.wire.common_messages import ShapedMessage
from stablecast.transports.wire.errors import WireError
from tests.support.pcap import Capture
from tests.support.retransmissions import encode_recovered
from tests.support.tshark import Packet, dissect, summary
from tests.support.vocabulary import ACKNOWLEDGEMENTS, INCARNATIONS, KEEPALIVES, MESSAGES, U32


@given(MESSAGES)
def test_a_message_survives_the_wire(message: m.Message) -> None:
    decoded, end = lbmc.decode(data := codec.encode(message))
    assert end == len(data)
    assert codec.decode(decoded) == message


@given(MESSAGES, st.integers(1, MAX_DOMAIN))
def test_the_domains_of_addresses_survive_the_wire(message: m.Message, domain: int) -> None:
    named = from_domain(message, domain, 0)
    assert codec.decode(lbmc.decode(codec.encode(named))[0]) == named


def test_domains_for_other_than_all_stores_are_malformed() -> None:
    grant = m.Registered(m.Role.SOURCE, 0, 1, 1, 7, False, 0, 9, 0, 0, peers=((1, "2:10.0.0.1:14567", 9),))
    message, _ = lbmc.decode(codec.encode(grant))
    last = message.headers[-1]
    assert isinstance(last, h.ExtendedOption)
    short = attrs.evolve(last, data=bytes(3))
    with pytest.raises(WireError, match="domains"):
        codec.decode(attrs.evolve(message, headers=(*message.headers[:-1], short)))


def read(data: bytes) -> m.Message | None:
    try:
        return codec.decode(lbmc.decode(data)[0])
    except WireError:
        return None


@given(st.binary(max_size=400))
def test_arbitrary_bytes_raise_only_the_one_error(data: bytes) -> None:
    found = read(data)
    assert found is None or isinstance(found, get_args(m.Message))


@given(MESSAGES, st.data())
def test_flipped_bits_raise_only_the_one_error(message: m.Message, data: st.DataObject) -> None:
    raw = bytearray(codec.encode(message))
    for place in data.draw(st.lists(st.integers(0, 8 * len(raw) - 1), min_size=1, max_size=4)):
        raw[place // 8] ^= 1 << place % 8
    found = read(bytes(raw))
    assert found is None or isinstance(found, get_args(m.Message))


@given(MESSAGES, st.data())
def test_a_truncated_message_is_none(message: m.Message, data: st.DataObject) -> None:
    raw = codec.encode(message)
    assert read(raw[: data.draw(st.integers(0, len(raw) - 1))]) is None


@given(MESSAGES, st.data())
def test_a_message_without_one_of_its_headers_raises_only_the_one_error(m_: m.Message, data: st.DataObject) -> None:
    message, _ = lbmc.decode(codec.encode(m_))
    missing = data.draw(st.integers(0, len(message.headers) - 1))
    rest = message.headers[:missing] + message.headers[missing + 1 :]
    try:
        found = codec.decode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=rest))
    except WireError:
        return
    assert isinstance(found, get_args(m.Message))


@pytest.mark.rows("P-436")
@given(INCARNATIONS, INCARNATIONS, U32, st.binary(max_size=2000), st.booleans())
def test_a_retransmission_survives_the_wire(s: int, sender: int, number: int, payload: bytes, proactive: bool) -> None:
    """The kind marks a retransmission without a request."""
    recovered = codec.Recovered(s, sender, number, payload, proactive)
    message, _ = lbmc.decode(encode_recovered(recovered))
    assert message.kind == (lbmc.MessageKind.PROACTIVE if proactive else lbmc.MessageKind.RETRANSMISSION)
    assert message.kind in codec.RECOVERED_KINDS
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
        control(
            h.Preg(flags=h.Preg.PROXY_SOURCE, reg_id=1, transport_idx=1, topic_idx=1, resp_port=1, resp_ip="127.0.0.1"),
            h.StoreId(flags=0),
            h.TopicName(topic="t"),
            h.ClientLifetime(activity_tmo=0, lifetime=0),
        ),
        control(
            h.Sri(version=1, low_sqn=0, high_sqn=0),
            h.TcpSid(sid=1),
            h.TopicIdx(tidx=1),
            h.TopicName(topic="t"),
            h.TopicSourceExfunc(src_ip="127.0.0.1", src_port=1, functionality_flags=0),
            h.StoreGroup(grp_idx=1, grp_sz=3),
        ),
        control(h.ReceiverKeepalive(rcv_regid=1, session_id=0, ctxinst=bytes(8))),
    ],
)
def test_messages_without_meaning_are_refused(message: lbmc.Message) -> None:
    with pytest.raises(WireError):
        codec.decode(message)


@pytest.mark.parametrize(
    "message",
    [
        lbmc.Message(lbmc.MessageKind.RETRANSMISSION, 1, 2, (), b"x"),
        lbmc.Message(lbmc.MessageKind.PROACTIVE, 1, 2, (h.CtxInstD(ctxinst=bytes(8)),), b"x"),
        lbmc.Message(lbmc.MessageKind.DATA, 1, 2, (h.CtxInstD(ctxinst=bytes(8)), h.CtxInst(ctxinst=bytes(8))), b"x"),
    ],
)
def test_a_retransmission_without_incarnations_or_of_another_kind_is_refused(message: lbmc.Message) -> None:
    with pytest.raises(WireError):
        codec.decode_recovered(message)


def test_a_bare_acknowledgement_speaks_for_one_number() -> None:
    """Peers that know no ranges acknowledge one number at a time."""
    ack = h.Ack(type=h.Ack.STABLE, transport_idx=1, id_2=2, rcv_reg_id=0, seqnum=4)
    assert codec.decode(control(ack, h.StoreId(flags=3))) == m.StableAck(3, codec.join(1, 2), 4, 4)


def option(subtype: int, data: bytes) -> h.Header:
    return h.ExtendedOption(subtype=subtype, data=data)


@pytest.mark.parametrize("sizes", [[5], [9], [8, 11]])
def test_a_history_that_does_not_fit_together_is_refused(sizes: list[int]) -> None:
    with pytest.raises(WireError):
        extended_options.decode_lives(control(*(option(extended_options.HISTORY, bytes(size)) for size in sizes)))


def test_other_extended_options_are_not_a_history() -> None:
    assert extended_options.decode_lives(control(option(257, b"selector"))) == (0, (), 0)


@given(st.integers(1, 0xFFFF), st.binary(max_size=3 * h.ExtendedOption.MAX_DATA + 1))
def test_an_extended_option_comes_in_as_many_pieces_as_it_needs(subtype: int, data: bytes) -> None:
    pieces = encode_option(subtype, data)
    assert len(pieces) == -(-len(data) // h.ExtendedOption.MAX_DATA)
    assert find_option(control(*pieces), subtype) == data


def test_terms_of_another_size_are_refused() -> None:
    with pytest.raises(WireError):
        extended_options.decode_pace(control(option(extended_options.TERMS, bytes(47))), True)


@pytest.mark.rows("P-567", "P-570", "P-571")
@pytest.mark.parametrize(("public", "pace"), [(False, m.Pace.SOURCE), (True, m.Pace.RECEIVERS)])
def test_peers_without_our_option_are_paced_by_the_public_flag(public: bool, pace: m.Pace) -> None:
    assert extended_options.decode_pace(control(h.StoreId(flags=1)), public) == (pace, m.Wishes())


LIFE = codec.join(0x1234_5678, 9)
MANY_LIVES = tuple((codec.join(0x1234_5678, index), index) for index in range(50))
"""More than one header has room for."""
CHOSEN: list[tuple[m.Message, dict[str, list[str]]]] = [
    (
        m.Register(
            m.Role.SOURCE, 2, 5, 0, LIFE, 0, "topic", 0xFEED, "10.0.0.1:14391", "10.0.0.1:14371", 1000, 2000, 77,
            m.Pace.RECEIVERS, m.Wishes(1, 2, 3, 4, 5, 6, True), True, m.ElectionToken(0xABCD, 2, LIFE - 1), 9, 8,
        ),
        {
            "lbmc.ume_preg.flags.p_flag": ["1"],
            "lbmc.ume_preg.flags.w_flag": ["1"],
            "lbmc.ume_preg.flags.d_flag": ["0"],
            "lbmc.ume_proxy_src.flags.enable": ["1"],
            "lbmc.ume_psrc_election_token.store_index": ["2"],
            "lbmc.ume_psrc_election_token.token": ["0x0000abcd"],
            "lbmc.ume_pser.transport_idx": [str(0x1234_5678)],
            "lbmc.ume_pser.topic_idx": ["8"],
            "lbmc.extopt.subtype": [str(extended_options.HISTORY), str(extended_options.TERMS)],
        },
    ),
    (
        m.Registered(
            m.Role.RECEIVER, 2, 5, 7, LIFE, True, 3, 9, 1000, 2000, 1, MANY_LIVES, 1, True, m.Pace.NON_BLOCKING
        ),
        {
            "lbmc.ume_preg_resp.code.n_flag": ["1"],
            "lbmc.ume_preg_resp.code.w_flag": ["1"],
            "lbmc.ume_preg_resp.code.o_flag": ["1"],
        },
    ),
    (
        m.Registered(m.Role.SOURCE, 0, 0, 7, LIFE, False, 0, 0xFFFF_FFFF, 1000, 2000),
        {"lbmc.ume_preg_resp.code": ["0x00"], "lbmc.ume_preg_resp.high_seqnum": ["4294967295"]},
    ),
    (
        m.Refused(m.Role.SOURCE, 2, 5, 7, LIFE, m.Refusal.HELD_BY_RECEIVER, held_ms=21_000),
        {"lbmc.ume_preg_resp.code.e_flag": ["1"], "lbmc.ume_preg_resp.code.code": ["0x03"]},
    ),
    (
        m.Deregister(m.Role.RECEIVER, 1, 5, 7, LIFE, 50, "10.0.0.1:14391"),
        {"lbmc.ume_preg.flags.d_flag": ["1"], "lbmc.ume_preg.reg_id": ["7"], "lbmc.ume_preg.src_reg_id": ["50"]},
    ),
    (
        m.Deregistered(m.Role.RECEIVER, 1, 5, 7, LIFE, 99),
        {"lbmc.ume_preg_resp.code.d_flag": ["1"], "lbmc.ume_preg_resp.high_seqnum": ["99"]},
    ),
    (m.StableAck(1, LIFE, 3, 8, nack=True), {"lbmc.ume_ack.flags": ["0x04"], "lbmc.ume_ranged_ack.last_seqnum": ["8"]}),
    (
        m.ConsumptionAck(LIFE, 50, 7, 8, m.AckFlag.EXPLICIT | m.AckFlag.USER_REG_ID | m.AckFlag.ARRIVAL_ORDER, 9),
        {
            "lbmc.ume_ack.flags.o_flag": ["1"],
            "lbmc.ume_ack.flags.u_flag": ["1"],
            "lbmc.ume_ack.flags.e_flag": ["1"],
        },
    ),
    (
        m.ConsumptionAck(LIFE, 0, 7, 8, first=3),
        {"lbmc.ume_ranged_ack.first_seqnum": ["3"], "lbmc.ume_ranged_ack.last_seqnum": ["8"]},
    ),
    (
        m.ReceiverAlive(LIFE, 7, 0xFEED, 77),
        {"lbmc.ume_receiver_keepalive.rcv_regid": ["7"], "lbmc.ume_receiver_keepalive.session_id": ["65261"]},
    ),
    (m.RetransmitRequest(m.Role.RECEIVER, LIFE, 0, 1, 3, 8, "10.0.0.1:14391"), {"lbmc.ume_rxreq.id_2": ["0"]}),
    (
        m.RetransmitRequest(m.Role.RECEIVER, LIFE, 7, 1, 3, 8, "10.0.0.1:14391", 2),
        {"lbmc.ume_rxreq.id_2": ["7"], "lbmc.ume_storeid.store_id": ["2"]},
    ),
    (m.RetransmitRequest(m.Role.STORE, LIFE, 0, 1, 3, 8, "10.0.0.1:14391"), {"lbmc.ume_rxreq.id_2": ["9"]}),
    (m.Keepalive(m.Role.STORE, LIFE, 7, True, 1), {"lbmc.ume_keepalive.flags.r_flag": ["1"]}),
    (
        m.SourceInfo(
            LIFE, "topic", 4, 0, 9, "10.0.0.1:14391", (3, 1), True, (m.StoreEntry(0, 1, "10.0.0.3:14567", 50, 4),),
            2, ((LIFE, 0),), False,
        ),
        {
            "lbmc.ume_store_group.grp_idx": ["0", "1"],
            "lbmc.ume_store_group.grp_sz": ["3", "1"],
            "lbmc.topic_source_exfunc.functionality_flags.lj": ["0"],
            "lbmc.topic_source_exfunc.functionality_flags.ume": ["1"],
        },
    ),
    (m.SourceInfoRequest(LIFE), {"lbmc.sri_req.topic_idx": ["9"]}),
    (m.LateJoinRequest(LIFE, 3, "10.0.0.1:14391"), {"lbmc.lji_req.request_idx": ["3"]}),
    (m.LateJoinInfo(LIFE, 3, 0, 9), {"lbmc.ume_lj_info.high_seqnum": ["9"]}),
    (m.LateJoinInfo(LIFE, 3, 4, 9, 1), {"lbmc.ume_lj_info.low_seqnum": ["4"], "lbmc.ume_storeid.store_id": ["1"]}),
]  # fmt: skip
"""One message of each kind with all its fields, and fields of it as tshark shows them."""
SENDER, READER = ("10.0.0.2", 40010), ("10.0.0.3", 14567)


def judged(octets: list[bytes], path: Path) -> list[Packet]:
    """Return the packets that tshark decodes. Fails if it finds a fault."""
    capture = Capture()
    for message in octets:
        capture.tcp(SENDER, READER, message)
    capture.write(path)
    ports = {"tcp.port==14567": "lbttcp"}
    packets = dissect(path, ports)
    assert [packet.problems for packet in packets if packet.problems] == []
    assert summary(path, ports) == []
    return packets


@pytest.mark.rows("P-216", "P-219", "P-220", "P-247", "P-568", "P-571", "P-586")
def test_public_dissectors_read_every_message(tmp_path: Path) -> None:
    """Registrations, answers, SRIs and the rest, field by field."""
    assert {type(message) for message, _ in CHOSEN} == set(get_args(m.Message))
    packets = judged([codec.encode(message) for message, _ in CHOSEN], tmp_path / "messages.pcap")
    for (message, expected), packet in zip(CHOSEN, packets, strict=True):
        assert {name: packet.fields.get(name) for name in expected} == expected, message


def test_public_dissectors_read_messages_across_domains(tmp_path: Path) -> None:
    """With destination and stream, with domains in their addresses, and one after another."""
    here, there = Endpoint(1, "10.0.0.1", 14391), Endpoint(2, "10.0.0.2", 14567)
    position = h.Stream(stream_id=3, sqn=4, ctxinst=b"INSTANCE")
    octets = [codec.encode(from_domain(message, 1, 0)) for message, _ in CHOSEN]
    octets.append(encode_recovered(codec.Recovered(LIFE, LIFE, 5, b"x")))
    packets = judged([routed(one, there, here, position) for one in octets], tmp_path / "routed.pcap")
    expected = {"destination.domain_id": "2", "destination.port": "14567", "destination.orig_domain_id": "1"}
    expected |= {"stream.stream_id": "3", "stream.sqn": "4"}
    for packet in packets:
        assert {name: packet.fields[f"lbmc.{name}"][0] for name in expected} == expected


def test_public_dissectors_read_questions_of_readers_and_answers(tmp_path: Path) -> None:
    """They see an SRI_REQ and an SRI whose options they do not know."""
    question = StoredQuestion(request=1, reply_to="10.0.0.1:14391", topic="topic", since=5)
    (info,) = [message for message, _ in CHOSEN if isinstance(message, m.SourceInfo)]
    many = tuple((10 * number, 10 * number + 5) for number in range(100))
    answer = StoredAnswer(**attrs.asdict(info, recurse=False), answered=1, reg_id=7, ranges=many)
    asked, told = judged([codec.encode(question), codec.encode(answer)], tmp_path / "readers.pcap")
    assert asked.fields["lbmc.sri_req.topic_idx"] == ["0"]
    assert set(asked.fields["lbmc.extopt.subtype"]) == {str(stored_contents.QUESTION)}
    assert told.fields["lbmc.sri.high_sqn"] == ["9"]
    assert {str(stored_contents.ANSWER), str(extended_options.HISTORY)} == set(told.fields["lbmc.extopt.subtype"])


@pytest.mark.parametrize("message", [message for message, _ in CHOSEN], ids=lambda message: type(message).__name__)
def test_every_kind_of_message_survives_the_wire(message: m.Message) -> None:
    assert read(codec.encode(message)) == message


def test_public_dissectors_read_retransmissions(tmp_path: Path) -> None:
    octets = [encode_recovered(codec.Recovered(LIFE, LIFE, 5, b"x", proactive)) for proactive in (False, True)]
    packets = judged(octets, tmp_path / "retransmissions.pcap")
    assert [int(packet.fields["lbmc.type"][0], 0) for packet in packets] == [10, 2]


@given(
    st.sampled_from([0, 200, (1 << 32) - 30]),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 2)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.booleans(),
    st.lists(st.integers(0, 1 << 16), max_size=6),
)
def test_a_run_sent_again_is_the_same_however_many_are_alike(
    first: int, parts: list[tuple[int, int]], skip: int, proactive: bool, cuts: list[int]
) -> None:
    """Messages of one size make series, others come alone; the numbers and payloads are those of the run."""
    contents = [
        bytes((at % 256,)) * size for at, size in enumerate(size for count, size in parts for _ in range(count))
    ]
    skip = min(skip, len(contents) - 1)
    block = lbttcp.build(9, first, contents)
    again = codec.encode_again(LIFE, LIFE, block, skip, len(contents) - skip, proactive)
    decoder, found = lbttcp.StreamDecoder(series=True), list[tuple[int, bytes]]()
    places = sorted({cut % (len(again) + 1) for cut in cuts} | {0, len(again)})
    for start, stop in pairwise(places):
        for item in decoder.feed(again[start:stop]):
            assert isinstance(item, lbmc.Message)
            one = codec.decode_recovered(item)
            assert (one.session, one.incarnation, one.proactive) == (LIFE, LIFE, proactive)
            run = codec.decode_series(item).payloads if isinstance(item, lbttcp.RetransmissionSeries) else [one.payload]
            found += [((one.wire_number + at) % (1 << 32), content) for at, content in enumerate(run)]
    assert found == [((first + at) % (1 << 32), contents[at]) for at in range(skip, len(contents))]


SEGMENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 300, (1 << 32) - 3]),
        st.lists(st.integers(0, 2), min_size=1, max_size=30) | st.integers(1, 30).map(lambda count: [1] * count),
        st.sampled_from([LIFE, LIFE + 1]),
        st.booleans(),
    ),
    max_size=4,
)


def one_by_one(item: lbmc.Message) -> list[tuple[int, int, bool, int, bytes]]:
    one = codec.decode_recovered(item)
    contents = codec.decode_series(item).payloads if isinstance(item, lbttcp.RetransmissionSeries) else [one.payload]
    name = (one.session, one.incarnation, one.proactive)
    return [(*name, (one.wire_number + at) % (1 << 32), content) for at, content in enumerate(contents)]


@given(SEGMENTS, SEGMENTS)
def test_series_hold_what_single_retransmissions_do(
    some: list[tuple[int, list[int], int, bool]], others: list[tuple[int, list[int], int, bool]]
) -> None:
    """A series ends with numbers that jump, sizes that change, another session, and proactive retransmissions."""
    parts = [codec.greeting(7)]
    for first, sizes, session, proactive in (*some, *others):
        block = lbttcp.build(9, first, [bytes((at,)) * size for at, size in enumerate(sizes)])
        parts.append(codec.encode_again(session, LIFE, block, 0, len(sizes), proactive))
    stream = b"".join(parts)
    single, series = (lbttcp.StreamDecoder(series=wanted).feed(stream)[1:] for wanted in (False, True))
    assert [again for item in series if isinstance(item, lbmc.Message) for again in one_by_one(item)] == [
        again for item in single if isinstance(item, lbmc.Message) for again in one_by_one(item)
    ]
    assert not any(isinstance(item, lbttcp.RetransmissionSeries) for item in single)


SHAPED = st.lists(ACKNOWLEDGEMENTS | KEEPALIVES, max_size=3)


def taken_apart(stream: bytes, series: bool) -> list[m.Message] | None:
    """Return the messages of a stream; None if it is broken or a message is malformed."""
    try:
        found = lbttcp.StreamDecoder(series).feed(stream)
        return [codec.decode(item) for item in found if isinstance(item, lbmc.Message)]
    except WireError:
        return None


@given(SHAPED, st.data())
def test_a_shaped_message_decodes_the_same_header_by_header(those: list[m.Message], data: st.DataObject) -> None:
    """Also where bits are flipped, which makes other headers of them, or ends in the middle of one."""
    stream = bytearray(b"".join(map(codec.encode, those)))
    assert taken_apart(bytes(stream), series=True) == taken_apart(bytes(stream), series=False) == those
    for place in data.draw(st.lists(st.integers(0, max(0, 8 * len(stream) - 1)), max_size=3 * bool(those))):
        stream[place // 8] ^= 1 << place % 8
    cut = bytes(stream[: data.draw(st.integers(0, len(stream)))])
    assert taken_apart(cut, series=True) == taken_apart(cut, series=False)


@given(SHAPED)
def test_a_shaped_message_is_encoded_like_its_headers(those: list[m.Message]) -> None:
    for one in those:
        written = codec.encode(one)
        assert lbmc.encode(lbmc.decode(written)[0]) == written
        assert any(isinstance(item, ShapedMessage) for item in lbttcp.StreamDecoder(series=True).feed(written))


def test_values_that_do_not_fit_a_shape_are_refused() -> None:
    with pytest.raises(WireError, match="do not fit an acknowledgement"):
        codec.encode(m.StableAck(0, LIFE, 1 << 32, 5))
