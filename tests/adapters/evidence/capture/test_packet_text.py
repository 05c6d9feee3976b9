"""Packets as lines and as objects."""

import json
from pathlib import Path

import attrs

from stablecast.core.protocol import messages as core
from stablecast.evidence.capture import packet_text
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.traffic_survey import survey
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended
from tests.support import captures
from tests.support.captures import count, datagram, segment
from tests.support.traffic_capture import GROUP, RECEIVER, RESOLUTION, SOURCE, STREAM, all_kinds, data


def lines(path: Path) -> list[str]:
    plan = survey(path)
    found = list(packets(path, plan))
    return [packet_text.line(packet, plan, found[0].time_ns) for packet in found]


def test_each_packet_has_a_line(tmp_path: Path) -> None:
    found = lines(captures.pcap(tmp_path / "a.pcap", all_kinds().packets))
    assert found[0] == ("     1 0.000000 10.0.0.1:35000 > 224.9.10.11:12965 LBMR NORMAL [TQR, TIR] orders, orders=1")
    assert found[1] == (
        "     2 1.000000 10.0.0.1:35000 > 224.10.10.10:14400 LBT-RM DATA nak_port=14390 session_id=119 sqn=0 trail=0; "
        "LBMC DATA topic=1 (orders) sqn=0 7 bytes; LBMC DATA topic=1 (orders) sqn=0 7 bytes"
    )
    assert found[7].endswith("10.0.0.2:45000 LBMC CONTROL [TCP_SID sid=119]; LBMC DATA topic=1 sqn=0 7 bytes")
    assert "UMP SourceInfoRequest incarnation=5" in found[10]


def test_headers_show_their_fields_where_nothing_tells_what_they_mean(tmp_path: Path) -> None:
    octets = lbmc.encode(lbmc.Message(lbmc.MessageKind.CONTROL, headers=(h.StoreDomain(domain=7), h.StoreId(flags=3))))
    (found,) = lines(captures.pcap(tmp_path / "a.pcap", [segment(STREAM, RECEIVER, 1, octets)]))
    assert found.endswith("LBMC CONTROL [STORE_DOMAIN domain=7, STOREID flags=3]")


def test_extended_resolution_shows_its_body(tmp_path: Path) -> None:
    route = lbmr_extended.DomainRoute(count=1, address="10.0.0.1", port=1, length=20, domains=(7,))
    frame = datagram(SOURCE, RESOLUTION, lbmr_extended.encode(lbmr_extended.Packet(route)))
    (found,) = lines(captures.pcap(tmp_path / "a.pcap", [frame]))
    assert found.endswith("LBMR DOMAIN_ROUTE count=1 address=10.0.0.1 port=1 length=20 domains=[7]")


def test_records_are_json(tmp_path: Path) -> None:
    found = list(packets(captures.pcap(tmp_path / "a.pcap", [*all_kinds().packets, b"\x60"])))
    records = json.loads(json.dumps([packet_text.record(packet) for packet in found]))
    fields = {"record": "Nak", "nak_port": 14390, "session_id": 119, "options": [], "format": 0, "sqns": [1]}
    assert records[4]["layers"] == [{"type": "LBT-RM NAK", "parts": [], "fields": fields}]
    assert records[0]["layers"][0]["fields"]["kind"] == "NORMAL"
    assert records[6]["layers"][1]["fields"]["payload"] == b"payload".hex()
    assert [bool(record["settles"]) for record in records[7:11]] == [False, False, True, False]
    assert (records[-1]["kind"], records[-1]["verdict"], records[-1]["source"]) == (None, "other", "?")


def test_queries_and_quiet_packets(tmp_path: Path) -> None:
    pattern = lbmr.encode(lbmr.Packet(lbmr.PacketKind.WILDCARD, (lbmr.WildcardQuery(1, "^o"),)))
    alive = lbmr.encode(lbmr.Packet(lbmr.PacketKind.SOURCE_ALIVE))
    frames = [
        datagram(SOURCE, RESOLUTION, pattern),
        datagram(SOURCE, RESOLUTION, alive),
        segment(STREAM, RECEIVER, 0, b"", 0x02),
    ]
    found = lines(captures.pcap(tmp_path / "a.pcap", frames))
    assert found[0].endswith("LBMR WILDCARD [WC-TQR] ^o")
    assert found[1].endswith("LBMR SOURCE_ALIVE")
    assert found[2].endswith("10.0.0.1:14371 > 10.0.0.2:45000 no data")


def test_pieces_and_problems(tmp_path: Path) -> None:
    octets = data(0)
    frames = [
        segment(STREAM, RECEIVER, 1, octets[:5]),
        segment(STREAM, RECEIVER, 6, octets[5:]),
        datagram(SOURCE, GROUP, b"nonsense"),
        segment(STREAM, RECEIVER, 1 + len(octets), octets[:5]),
    ]
    found = lines(captures.pcap(tmp_path / "a.pcap", frames))
    assert found[0].endswith("a piece")
    assert found[1].endswith("LBMC DATA topic=1 sqn=0 7 bytes (with frames 1)")
    assert found[2].startswith("     3 2.000000 10.0.0.1:35000 > 224.10.10.10:14400 [MALFORMED: ")
    assert found[4].startswith("   end 3.000000")
    assert found[4].endswith("[INCOMPLETE: 5 bytes of a message that does not end] (with frames 4)")


def test_packets_of_others_have_no_endpoints(tmp_path: Path) -> None:
    assert lines(captures.pcap(tmp_path / "a.pcap", [b"\x60"])) == ["     1 0.000000 ? > ?"]


def test_long_fields_and_many_of_them_are_cut() -> None:
    @attrs.frozen
    class Wide:
        name: str = "x" * 100
        one: int = 1
        two: bytes = b"\xab"
        three: int = 3
        four: int = 4
        five: int = 5
        six: int = 6
        seven: int = 7
        eight: int = 8
        nine: int = 9

    assert packet_text._fields(Wide()) == ""
    text = packet_text._fields(Wide("y" * 100, *[b"\xcd"] * 9))  # type: ignore[arg-type]
    assert text.startswith(f" name={'y' * 60}... one=cd two=cd")
    assert text.endswith("seven=cd and 2 more")


def test_the_summary_counts(tmp_path: Path) -> None:
    path = captures.pcap(tmp_path / "a.pcap", [*all_kinds().packets, datagram(SOURCE, GROUP, b"nonsense"), b"\x60"])
    found = list(packet_text.summary(count(packets(path))))
    assert "       7 LBMC DATA" in found
    assert found[-1] == (
        "15 packets: 13 decoded, 0 different, 0 unknown, 0 incomplete, 0 damaged, 1 malformed, 1 other"
    )


def test_enumerations_are_named() -> None:
    register = core.Keepalive(core.Role.SOURCE, 5, 1, False)
    assert packet_text._fields(register).startswith(" role=SOURCE incarnation=5")
    assert packet_text._plain(core.AckFlag(0)) == "NONE"
