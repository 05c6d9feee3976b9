"""What a stranger can hand to the programs: bytes of a peer, and files. Each target names the errors that refuse it."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

import attrs

from stablecast.archive.manifest import MANIFEST, Manifest
from stablecast.client.presence import announcement, decoded
from stablecast.config import client_xml, option_files, plan_assembly
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import SECOND
from stablecast.core.protocol.messages import Deregister, Keepalive, Role, SourceInfoRequest
from stablecast.core.sharing.member import MemberConfig
from stablecast.evidence.capture.decoder import packets
from stablecast.evidence.capture.files import frames
from stablecast.evidence.capture.ip import TcpSegment, UdpDatagram
from stablecast.evidence.capture.network import IpNetwork
from stablecast.evidence.trace import container
from stablecast.evidence.trace.frames import Foot, Head, first_line, last_line, parse_frame
from stablecast.evidence.trace.tools.records import read_records
from stablecast.lab.whole.command import SIMULATOR
from stablecast.ops.operations import directory_contents
from stablecast.resolver.lbmrd import config as lbmrd
from stablecast.resolver.srs.xml_config import load_xml
from stablecast.router import router_files
from stablecast.runtime.policy import Policy
from stablecast.store.client_records import clients_of, generation_of, memory_of
from stablecast.transports import codec
from stablecast.transports.codec.lbttcp import RetransmissionSeries, Run, StreamDecoder, build
from stablecast.transports.resolution import patterns
from stablecast.transports.resolution.records import MAX_TOPIC_BYTES, SourceRecord
from stablecast.transports.routing import inputs as ev
from stablecast.transports.routing import link_messages as lm
from stablecast.transports.routing.network_map import Neighbour, NodeRecord, path_name
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.routing.router import Router
from stablecast.transports.wire import lbmc, lbmr, lbtrm, lbtru, properties, rsocket, srs
from stablecast.transports.wire.errors import WireError
from stablecast.transports.wire.properties import Properties, Property
from tests.support.tree import ROOT

FIXTURES: Final = ROOT / "tests" / "fixtures"
RELEASE: Final = FIXTURES / "release_0_1_0"
MANY: Final = 400
"""Samples of a target that are taken from a capture or a trace, at most."""

CAPTURE_BYTES: Final = 6_000
"""Bytes of a capture that is mutated, at most."""


@attrs.frozen
class Target:
    """A reader of untrusted bytes.

    Attributes:
        run: Reads them whole, as its program does.
        refuses: The errors that refuse malformed bytes; any other one is a fault.
        samples: Well-formed bytes, which a fuzzer begins with.
        file: Whether the bytes are a file; a file may take some memory in proportion to its size.
    """

    run: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    samples: Callable[[], Iterable[bytes]]
    file: bool = False

    def accepts(self, data: bytes) -> bool:
        """Return whether the reader takes the bytes. Raises what it must not raise."""
        try:
            self.run(data)
        except self.refuses:
            return False
        return True


def _control(data: bytes) -> None:
    codec.decode(lbmc.decode(data)[0])


def _stream(series: bool, data: bytes) -> None:
    """Read a connection in two pieces: the first byte says where they part."""
    stream = StreamDecoder(series)
    part = data[0] if data else 0
    for piece in data[1 : part + 1], data[part + 1 :]:
        for found in stream.feed(piece):
            if isinstance(found, lbmc.Message) and not isinstance(found, RetransmissionSeries | Run):
                codec.decode(found)


def _services(data: bytes) -> None:
    for frame in rsocket.FrameDecoder().feed(data):
        if frame.metadata is not None:
            srs.parse_hello(frame.metadata)
        srs.decode(frame.payload)


def _pattern(data: bytes) -> None:
    """Search for a foreign pattern in a topic: a line feed parts them. The fuzzer's limit of time judges the search."""
    pattern, _, topic = data.decode(errors="replace").partition("\n")
    found = patterns.compiled(patterns.translated(pattern[: patterns.MAX_PATTERN_BYTES]))
    if found is not None:
        found.search(topic[:MAX_TOPIC_BYTES])
    patterns.expression(pattern).search(topic[:MAX_TOPIC_BYTES])


_NODE: Final = 1 << 63


def _link(data: bytes) -> None:
    """Let the other side of a router's link say this, and then let it go."""
    router = Router.create([PortalSettings("home", 1, (b"home",)), PortalSettings("link", 0)], 0, _NODE, "edge")
    router.handle_timeout(3 * SECOND)
    router.receive(ev.LinkBegun(1, _NODE + 1, "other"), 3 * SECOND)
    router.handle_timeout(3 * SECOND)
    router.receive(ev.LinkArrived(1, tuple(StreamDecoder().feed(data))), 3 * SECOND)
    router.handle_timeout(20 * SECOND)
    router.receive(ev.LinkEnded(1, "end"), 20 * SECOND)
    router.handle_timeout(90 * SECOND)


def _of_link() -> list[bytes]:
    """Return what a router behind which a domain has a source and a receiver says on a link."""
    other, beside = _NODE + 1, (Neighbour(2), Neighbour(_NODE))
    source = SourceRecord("", 0, 1, "10.0.0.1:14391", True, b"instance", bytes(32), 1, 1, 2)
    name = path_name(path_name(0, 2), other)
    told = (
        NodeRecord(other, "other", 2, beside),
        lm.PathsTold(((2, name),)),
        lm.InterestTold(lbmr.TopicQuery("orders"), 2, True),
        lm.InterestTold(lbmr.WildcardQuery(1, "^o"), 2, True),
        lm.SourceTold("orders", source, True),
        lm.SignOfLife(True, 1, SECOND, lm.Digest(1, 2, 3)),
        lm.NameTold("store", 2, True),
    )
    octets = [lm.encode(one) for one in told]
    return [b"".join(octets) + build(1, 7, [b"data"]), *octets]


def _journal(data: bytes) -> None:
    records = data.split(b"\n")
    clients_of(records), generation_of(records), memory_of(records)


@cache
def _folder() -> Path:
    """Return a folder for the files of this process, in memory where the system has that."""
    memory = Path("/dev/shm")
    found = Path(tempfile.mkdtemp(prefix="stablecast-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def _file(name: str, read: Callable[[Path], object], data: bytes) -> object:
    path = _folder() / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return read(path)


def _packets(path: Path) -> None:
    for _ in packets(path):
        pass


def _records(path: Path) -> None:
    for trace in read_records([path]):
        for _ in trace:
            pass


def _files(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]


@cache
def _payloads(kind: type[TcpSegment] | type[UdpDatagram]) -> Sequence[bytes]:
    """Return what the datagrams, or the segments of connections, of a recorded capture carry."""
    network = IpNetwork()
    carried = [network.unwrap(frame) for frame in frames(RELEASE / "wire.pcapng")]
    contents = [one.content for one in carried if one is not None]
    return [bytes(one.payload) for one in contents if isinstance(one, kind) and one.payload][:MANY]


def _schedules() -> Iterable[bytes]:
    lines = (ROOT / "tests" / "adapters" / "lab" / "whole" / "found.jsonl").read_text(encoding="utf-8").splitlines()
    for schedule in map(json.loads, lines):
        yield json.dumps({key: schedule[key] for key in schedule if key not in {"name", "defect"}}).encode()


def _captures() -> Iterable[bytes]:
    """Return a capture, cut short: a fuzzer's inputs become as long as the longest sample."""
    found = (RELEASE / "wire.pcapng").read_bytes()
    ends = [frame.offset for frame in frames(RELEASE / "wire.pcapng") if frame.offset < CAPTURE_BYTES]
    return [found[: ends[-1]]]


def _messages() -> Iterable[bytes]:
    yield from (
        codec.encode(one)
        for one in (
            SourceInfoRequest(7),
            Deregister(Role.SOURCE, 0, 1, 5, 7, 0, "127.0.0.1:9"),
            Keepalive(Role.RECEIVER, 7, 5, respond=True),
        )
    )
    yield from _payloads(TcpSegment)


def _connections() -> Iterable[bytes]:
    return [b"\x20" + one for one in _messages()]


def _frame(snapshot: str, records: bytes) -> bytes:
    first = first_line(Head(0, Role.SOURCE, "orders", 0, 0, 5, snapshot.encode()))
    return first + records + last_line(0, Foot(records.count(b"\n"), "", closed=True))


def _trace_texts() -> Iterable[bytes]:
    return [_frame("{}", b'{"t":6,"in":{"$":"Tick"},"out":[]}\n'), _frame('{"a":[1,{"b":null}]}', b"")]


def _traces() -> Iterable[bytes]:
    for text in _trace_texts():
        with tempfile.TemporaryFile() as file:
            container.append(file.fileno(), 0, text)
            yield file.read()


def _properties() -> bytes:
    key = Property("a", 4, bytes(4), 0, 24, 28)
    return properties.encode(Properties(">", properties.VERSION, 0, (key,), bytes(32)))


_WIRE: Final = (WireError,)
_REFUSED: Final = (StablecastError, OSError)
_ROUTER_XML: Final = b"""<tnw-gateway version="1.0"><daemon><name>r</name></daemon><portals><endpoint>
<name>a</name><domain-id>1</domain-id><topic-purge/><acl><inbound><ace match="accept"><pcre-pattern>^a</pcre-pattern>
<source-ip comparison="lt" value="10.0.0.1"/></ace></inbound></acl><sqn-window size="64" increment="8"/></endpoint>
<endpoint><name>b</name><domain-id>2</domain-id><lbm-attributes><option scope="context"
name="resolver_unicast_daemon" value="127.0.0.1:1"/></lbm-attributes></endpoint></portals></tnw-gateway>"""
_ROUTER_TOML: Final = b"""[daemon]
log = { path = "a", type = "file" }
[[portals.endpoint]]
name = "a"
domain-id = 1
context = { resolver_unicast_daemon = "127.0.0.1:1" }
sqn-window = { size = 64, increment = 8 }
acl.inbound.ace = [{ match = "accept", topic = "a" }]
[[portals.endpoint]]
name = "b"
domain-id = 2
"""
TARGETS: Final[dict[str, Target]] = {
    "control": Target(_control, _WIRE, _messages),
    "connection": Target(partial(_stream, False), _WIRE, _connections),
    "requests": Target(partial(_stream, True), _WIRE, _connections),
    "resolution": Target(lbmr.decode_partly, _WIRE, partial(_payloads, UdpDatagram)),
    "link": Target(_link, _WIRE, _of_link),
    "lbt-rm": Target(lbtrm.decode, _WIRE, lambda: [lbtrm.encode(lbtrm.Nak(nak_port=1, session_id=7, sqns=(1, 9)))]),
    "lbt-ru": Target(lbtru.decode, _WIRE, lambda: [lbtru.encode(lbtru.Nak(sqns=(1, 2, 9)))]),
    "service": Target(_services, _WIRE, lambda: [rsocket.encode(rsocket.Frame(rsocket.FrameKind.KEEPALIVE, 0))]),
    "properties": Target(properties.decode, _WIRE, lambda: [_properties()]),
    "presence": Target(decoded, (), lambda: [announcement(MemberConfig(5, 3), leaving=False)]),
    "pattern": Target(
        _pattern, _REFUSED, lambda: [rb"^ord[a-z]*\.(eu|us)$" + b"\norders.eu", b"[[:upper:]]+x?\nAAAA", b"a*b*\nab"]
    ),
    "states": Target(_journal, _REFUSED, lambda: [b'{"forget":5}\n{"memory":1,"generation":3,"waiting":1}']),
    "segment": Target(
        partial(_file, "journal/00000001.seg", lambda path: directory_contents.read(path.parent, thorough=True)),
        _REFUSED,
        _files("tests/fixtures/release_0_1_0/journal/*"),
        file=True,
    ),
    "trace": Target(partial(_file, "a.sct", _records), _REFUSED, _traces, file=True),
    "trace frame": Target(parse_frame, _REFUSED, _trace_texts),
    "capture": Target(partial(_file, "a.pcapng", _packets), _REFUSED, _captures, file=True),
    "options": Target(
        partial(_file, "a.cfg", option_files.read), _REFUSED, _files("tests/fixtures/guide/*.cfg"), file=True
    ),
    "application": Target(
        partial(_file, "a.xml", partial(client_xml.load, selection=client_xml.Selection("sender"))),
        _REFUSED,
        _files("tests/fixtures/guide/*.xml"),
        file=True,
    ),
    "store xml": Target(
        partial(_file, "s.xml", plan_assembly.load), _REFUSED, _files("tests/fixtures/guide/*.xml"), file=True
    ),
    "store toml": Target(
        partial(_file, "s.toml", plan_assembly.load),
        _REFUSED,
        lambda: [b'[daemon]\nlog = "stderr"\n[[store]]\nname = "a"\nport = 14567\n'],
        file=True,
    ),
    "relay": Target(
        partial(_file, "r.xml", lbmrd.load),
        _REFUSED,
        lambda: [
            (
                b'<lbmrd version="1.0"><daemon><interface>127.0.0.1</interface><port>15380</port></daemon>\n'
                b'<domains><domain name="a"><network>10.0.0.0/8</network></domain></domains><transformations>\n'
                b'<transform source="a" destination="a"><rule><match address="10.0.0.1" port="*"/>'
                b'<replace address="10.0.0.2" port="*"/></rule></transform></transformations></lbmrd>'
            )
        ],
        file=True,
    ),
    "srs": Target(
        partial(_file, "v.xml", load_xml),
        _REFUSED,
        lambda: [b'<um-srs version="1.0"><srs><interface>127.0.0.1</interface><port>12000</port></srs></um-srs>'],
        file=True,
    ),
    "policy": Target(
        Policy.parse,
        _REFUSED,
        lambda: [b'[[allow]]\nnames = ["orders-*"]\nroles = ["source", "receiver"]\ntopics = ["orders/.*"]\n'],
        file=True,
    ),
    "schedule": Target(partial(_file, "schedule.json", SIMULATOR._read), _REFUSED, _schedules, file=True),
    "router xml": Target(partial(_file, "r.xml", router_files.load), _REFUSED, lambda: [_ROUTER_XML], file=True),
    "router toml": Target(partial(_file, "r.toml", router_files.load), _REFUSED, lambda: [_ROUTER_TOML], file=True),
    "archive": Target(
        partial(_file, MANIFEST, lambda path: Manifest.load(path.parent)),
        _REFUSED,
        lambda: [b'{"format":1,"topic":"t","sources":{},"files":[]}'],
        file=True,
    ),
}
"""All of them by name."""
