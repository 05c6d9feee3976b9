"""Names for everything that is declared."""

from typing import get_args

from stablecast.evidence.capture import names
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmr, lbmr_extended, lbtrm, lbtru, srs
from tests.support.layouts import sample


def test_every_declared_header_has_a_name() -> None:
    assert h.HEADERS.classes.keys() <= names.HEADERS.keys()
    assert len(set(names.HEADERS.values())) == len(names.HEADERS)
    assert names.header(sample(h.Preg)) == "PREG"


def test_other_headers_are_called_by_their_code() -> None:
    assert names.header(h.UnknownHeader(48, b"xx")) == "UMQ_REG"
    assert names.header(h.UnknownHeader(200, b"xx")) == "header 200"


def test_every_packet_and_message_has_a_name() -> None:
    assert names.LBTRM.keys() == set(get_args(lbtrm.Packet))
    assert names.LBTRU.keys() == set(get_args(lbtru.Packet))
    packets = set(get_args(lbmr.AnyPacket)) - {lbmr.Packet}  # a packet has the name of its kind
    assert names.LBMR_BODIES.keys() == packets | set(get_args(lbmr_extended.Body))
    assert names.SRS.keys() == set(get_args(srs.Message))
