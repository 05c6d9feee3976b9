"""One stranger of `tools.bench.strangers`: what a peer can do in masses that nobody knows.

    python -m tools.bench.floods KIND TARGETS

TARGETS is JSON, see `Targets`. Each line of standard input is a pace in JSON: attempts a second, null for none, 0 for
as many as the processor gives to a process of the lowest priority. Lines of standard output have the attempts so far.
"""

import json
import os
import random
import socket
import ssl
import struct
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Final

import attrs

from stablecast.core.protocol import messages as msg
from stablecast.core.protocol.messages import Role
from stablecast.transports import codec
from stablecast.transports.wire import lbmr, rsocket, srs
from stablecast.transports.wire.rsocket import Frame, FrameKind, RsocketSetup

STRANGER: Final = "127.0.0.66"
"""Address of the stranger, so that it is a host of its own to the programs. All others are at 127.0.0.1."""

THREADS: Final = 4
OPEN: Final = 3_000
"""Connections that each thread leaves open, at most; then it closes its oldest."""

PATIENCE_S: Final = 1.0
"""Seconds for which an attempt waits for a connection or an answer."""

INTERESTS: Final = 100_000
AT_ONCE: Final = 500
"""Topics of interest, and how many of them are said in one attempt."""

RECEIVED_BYTES: Final = 65_536
"""Bytes that the stranger's system keeps unread. More would load this host; a stranger from afar loads its own."""

PAUSE_S: Final = 0.02
LOWEST: Final = 19
"""Niceness of a stranger without a pace."""

LORIS_BYTES: Final = 50
"""Connections that get one more byte in one attempt."""


@attrs.frozen
class Targets:
    """Where the known peers listen (`ip:port`), and what every receiver of the topic knows of its source."""

    tcp: Mapping[str, list[str]]
    udp: Mapping[str, list[str]]
    topic: str
    life: int
    reg_id: int

    @property
    def every(self) -> list[str]:
        return [place for places in self.tcp.values() for place in places]


Attempt = Callable[[int], None]
"""One attempt, by its number. OSError: it failed, which is counted."""


def place_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def connect(place: str) -> socket.socket:
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        made.settimeout(PATIENCE_S)
        made.bind((STRANGER, 0))
        made.connect(place_of(place))
    except OSError:
        made.close()
        raise
    return made


def datagrams() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((STRANGER, 0))
    return made


def answers(read: bool) -> str:
    """Listen for those who answer at an address of the stranger; return the address. Nobody reads, unless `read`."""
    listening = socket.create_server((STRANGER, 0), backlog=512)

    def serve() -> None:
        kept = deque[socket.socket](maxlen=OPEN)
        while True:
            made, _ = listening.accept()
            kept.append(made)
            if read:
                threading.Thread(target=_read_away, args=(made,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return "{}:{}".format(*listening.getsockname())


def _read_away(made: socket.socket) -> None:
    with suppress(OSError), made:
        while made.recv(1 << 16):
            pass


def leaving(octets: bytes, places: list[str]) -> Attempt:
    """Connect, say the octets, and leave the connection open."""
    kept = deque[socket.socket]()

    def attempt(number: int) -> None:
        made = connect(places[number % len(places)])
        kept.append(made)
        if octets:
            made.sendall(octets)
        if len(kept) > OPEN:
            kept.popleft().close()

    return attempt


def silent(targets: Targets) -> Attempt:
    return leaving(b"", targets.every)


def half_frame(targets: Targets) -> Attempt:
    return leaving(codec.encode(msg.SourceInfoRequest(targets.life))[:7], targets.every)


def garbage(targets: Targets) -> Attempt:
    """Begin as a peer does, and go on with what is none."""
    chance = random.Random(1)
    control = codec.encode(msg.Keepalive(Role.RECEIVER, targets.life, 5, respond=False))
    service = rsocket.encode(rsocket.setup_frame(RsocketSetup(5000, 60000)))
    monitors = {*targets.tcp.get("monitor", ())}

    def attempt(number: int) -> None:
        place = targets.every[number % len(targets.every)]
        if place in monitors:
            hello = b"GET / HTTP/1.1\r\n"
        else:
            hello = service if place in targets.tcp.get("service", ()) else control
        with connect(place) as made:
            made.sendall(hello + chance.randbytes(4096))
            made.recv(4096)

    return attempt


def joiners(targets: Targets) -> Attempt:
    """Join every stream and request port, as a receiver does, and read nothing."""
    return leaving(b"", targets.tcp["source"])


def registration(targets: Targets, reg_id: int, reply_to: str, topic: str = "") -> bytes:
    number = reg_id & 0xFFFF
    return codec.encode(
        msg.Register(
            Role.SOURCE, 0, 1, reg_id, 7_000_000 + number,
            source_reg_id=0, topic=topic or f"strange/{reg_id}", session_id=0, reply_to=reply_to,
            transport=reply_to, activity_timeout_ms=0, state_lifetime_ms=0,
        )
    )  # fmt: skip


def registrations(targets: Targets) -> Attempt:
    """Register another source of another topic each time."""
    reply_to, link = answers(read=True), Link(targets.tcp["store"][0])
    return lambda number: link.say(registration(targets, 100_000 + number, reply_to))


def storm(targets: Targets) -> Attempt:
    """Register the same source again and again, and the RegID of the known one."""
    reply_to, link = answers(read=True), Link(targets.tcp["store"][0])

    def attempt(number: int) -> None:
        mine = number % 2
        link.say(registration(targets, 77 if mine else targets.reg_id, reply_to, "strange" if mine else targets.topic))

    return attempt


def retransmissions(targets: Targets) -> Attempt:
    """Ask the store and the source for everything, and read no answer."""
    reply_to = answers(read=False)
    links = [Link(place) for place in (*targets.tcp["store"], *targets.tcp["source"])]

    def attempt(number: int) -> None:
        asked = msg.RetransmitRequest(
            Role.RECEIVER, targets.life, targets.reg_id, number & 0xFFFF_FFFF, 0, 1_000_000, reply_to
        )
        late = msg.LateJoinRequest(targets.life, number & 0xFFFF_FFFF, reply_to)
        links[number % len(links)].say(codec.encode(asked) + codec.encode(late))

    return attempt


@attrs.define
class Link:
    """A connection to a place, made anew when it ended."""

    place: str
    made: socket.socket | None = None
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def say(self, octets: bytes) -> None:
        with self.lock:
            if self.made is None:
                self.made = connect(self.place)
            try:
                self.made.sendall(octets)
            except OSError:
                self.made.close()
                self.made = None
                raise


def patterns(targets: Targets) -> Attempt:
    """Ask a relay, which copies to all: patterns, topics, and sources that are made up."""
    out = datagrams()
    relays = [place_of(place) for place in targets.udp["relay"]]
    trailer = lbmr.standard_options(bytes(8))

    def attempt(number: int) -> None:
        names = [f"strange/{number}/{at}" for at in range(8)]
        found = lbmr.TcpTransport("127.0.0.66", 1, 9)
        wanted = (*(lbmr.WildcardQuery(1, f"^{name}.*$") for name in names), lbmr.WildcardQuery(1, "."))
        asked = (*map(lbmr.TopicQuery, names), lbmr.TopicQuery(targets.topic))
        told = tuple(lbmr.Advertisement(name, found, 60, 1) for name in names)
        packets = (
            lbmr.Packet(lbmr.PacketKind.WILDCARD, wanted, (), trailer),
            lbmr.Packet(lbmr.PacketKind.NORMAL, asked, (), trailer),
            lbmr.Packet(lbmr.PacketKind.NORMAL, (), told, trailer),
        )
        out.sendto(lbmr.encode(packets[number % 3]), relays[number % len(relays)])

    return attempt


def spoofed(targets: Targets) -> Attempt:
    """Write other senders into datagrams: keepalives of nobody to a relay; made-up sources from a relay."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    chance = random.Random(1)
    alive = lbmr.encode(lbmr.Packet(lbmr.PacketKind.RECEIVER_ALIVE, (), (), lbmr.standard_options(bytes(8))))
    relays, contexts = targets.udp["relay"], targets.udp["contexts"]

    def attempt(number: int) -> None:
        if number % 2:
            send(raw, f"127.{chance.randrange(1, 255)}.{number >> 8 & 255}.{number & 255}:1044", relays[0], alive)
            return
        found = lbmr.TcpTransport("127.0.0.66", number & 0xFFFF_FFFF, chance.randrange(1024, 65536))
        forged = lbmr.Packet(
            lbmr.PacketKind.NORMAL, (), (lbmr.Advertisement(targets.topic, found, 60, number & 0xFFFF),),
            lbmr.standard_options(chance.randbytes(8)),
        )  # fmt: skip
        send(raw, relays[number // 2 % len(relays)], contexts[number // 2 % len(contexts)], lbmr.encode(forged))

    return attempt


def send(raw: socket.socket, source: str, target: str, octets: bytes) -> None:
    """Send a datagram of any sender. The kernel fills in the sums of the header."""
    (host, port), (there, at) = place_of(source), place_of(target)
    udp = struct.pack("!HHHH", port, at, 8 + len(octets), 0) + octets
    ends = socket.inet_aton(host) + socket.inet_aton(there)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0) + ends
    raw.sendto(head + udp, (there, 0))


def interest(targets: Targets) -> Attempt:
    """Want very many topics at a service, connection by connection."""
    said = [b"".join(map(_wanted, range(first, first + AT_ONCE))) for first in range(0, INTERESTS, AT_ONCE)]
    place, lock = targets.tcp["service"][0], threading.Lock()
    link, kept = Link(place), deque[socket.socket](maxlen=20)

    def attempt(number: int) -> None:
        part = number % len(said)
        with lock:
            if part == 0 or link.made is None:
                if link.made is not None:
                    kept.append(link.made)
                link.made = _client(place, number)
            made = link.made
        link.say(said[part])
        made.setblocking(False)
        with suppress(BlockingIOError):
            made.recv(1 << 20)
        made.settimeout(PATIENCE_S)

    return attempt


def _wanted(number: int) -> bytes:
    wanted = srs.ReceiverInfo(name=f"strange/{number}", instance=bytes(8))
    return rsocket.encode(Frame(FrameKind.REQUEST_FNF, 5, payload=srs.encode(wanted)))


def _client(place: str, session: int) -> socket.socket:
    made = connect(place)
    request = srs.RegistrationRequest(address=STRANGER, port=1, host_id=1, session_id=session & 0xFFFF_FFFF)
    made.sendall(
        rsocket.encode(rsocket.setup_frame(RsocketSetup(5000, 60000)))
        + rsocket.encode(
            Frame(FrameKind.REQUEST_RESPONSE, 1, metadata=srs.hello(1), payload=srs.encode(request))
        )
        + rsocket.encode(
            Frame(FrameKind.REQUEST_STREAM, 3, number=rsocket.FOREVER, payload=srs.encode(srs.StreamRequest()))
        )
    )  # fmt: skip
    return made


def hellos(targets: Targets) -> Attempt:
    """Begin a TLS handshake, and leave it: with each hello the other side has a secret to compute."""
    made, sent = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.MemoryBIO()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    begun = made.wrap_bio(ssl.MemoryBIO(), sent)
    with suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return leaving(
        sent.read(), [*targets.tcp["store"], *targets.tcp["source"], *targets.tcp["service"], *targets.tcp["router"]]
    )


def requests(targets: Targets) -> Attempt:
    """Ask monitors for pages and figures, with tokens that are wrong."""
    places = targets.tcp["monitor"]
    pages = ("/", "/metrics", "/api/daemon", "/api/stores/0/sources", "/login")

    def attempt(number: int) -> None:
        place = places[number % len(places)]
        with connect(place) as made:
            made.sendall(
                f"GET {pages[number % len(pages)]} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n"
                f"Authorization: Bearer wrong{number}\r\n\r\n".encode()
            )
            while made.recv(1 << 16):
                pass

    return attempt


def loris(targets: Targets) -> Attempt:
    """Say a little more now and then on many connections, each of which never says a whole thing."""
    kept = deque[socket.socket]()
    monitors = {*targets.tcp["monitor"]}
    lock = threading.Lock()

    def attempt(number: int) -> None:
        place = targets.every[number % len(targets.every)]
        made = connect(place)
        made.sendall(b"GET / HTTP/1.1\r\nX: " if place in monitors else b"\0")
        with lock:
            kept.append(made)
            if len(kept) > OPEN:
                kept.popleft().close()
            slow = [kept[at] for at in range(0, len(kept), max(1, len(kept) // LORIS_BYTES))]
        for one in slow:
            with suppress(OSError):
                one.send(b"a" if number % 7 else b"\0")

    return attempt


KINDS: Final[Mapping[str, Callable[[Targets], Attempt]]] = {
    "connections": silent,
    "half frames": half_frame,
    "garbage": garbage,
    "joiners": joiners,
    "registrations": registrations,
    "storm": storm,
    "retransmissions": retransmissions,
    "patterns": patterns,
    "spoofed": spoofed,
    "interest": interest,
    "hellos": hellos,
    "requests": requests,
    "loris": loris,
}
"""All kinds by name."""

NEED_TLS: Final = frozenset({"hellos"})


@attrs.define
class Stranger:
    """Attempts of all threads at one pace."""

    attempt: Attempt
    pace: float | None = None
    ended: bool = False
    counted: Counter[str] = attrs.field(factory=Counter)
    numbers: "count[int]" = attrs.field(factory=count)

    def run(self) -> None:
        due = time.monotonic()
        while not self.ended:
            if self.pace is None:
                time.sleep(PAUSE_S)
                continue
            if not self.pace:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)  # Priorities are those of threads.
            else:
                due = max(due + THREADS / self.pace, time.monotonic() - 1)
                time.sleep(max(0.0, due - time.monotonic()))
            try:
                self.attempt(next(self.numbers))
                self.counted["attempts"] += 1
            except OSError as error:
                self.counted["attempts"] += 1
                self.counted[type(error).__name__] += 1


def main() -> None:
    targets = Targets(**json.loads(sys.argv[2]))
    stranger = Stranger(KINDS[sys.argv[1]](targets))
    threads = [threading.Thread(target=stranger.run, daemon=True) for _ in range(THREADS)]
    for line in sys.stdin:
        stranger.pace = json.loads(line)
        for thread in threads:
            if not thread.is_alive():
                thread.start()
        print(json.dumps(stranger.counted), flush=True)
    stranger.ended = True
    print(json.dumps(stranger.counted), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
