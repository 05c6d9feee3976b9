"""Layers of the payload of a datagram, or of a message of a stream, each one decoded.

Decoded bytes count as ours only if they keep the rules of the formats to the letter: versions are those of the release,
and lengths those of the layouts. `UNKNOWN` keeps them and has a listed code without a layout here, or an unlisted code
in an open list. Everything else is `MALFORMED`.

Large messages of a capture: reassembled where all their pieces were captured.

A message appears with the frame that completes it. If pieces were not captured, only the pieces appear.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import attrs

from stablecast.core.machine import serial
from stablecast.core.machine.records import record
from stablecast.core.protocol.messages import Message as CoreMessage
from stablecast.evidence.capture import names
from stablecast.evidence.capture.ip import Endpoint, FrameVerdict
from stablecast.transports import codec
from stablecast.transports.codec.chained_messages import ChainedPiece
from stablecast.transports.codec.fragments import FragmentReassembly, WholeMessage
from stablecast.transports.codec.lbttcp import Run
from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended, lbmr_gateway, lbtrm, lbtru, properties, rsocket, srs
from stablecast.transports.wire.errors import WireError

MAX_HELD = 64 * 1024 * 1024
"""Bytes of waiting pieces; beyond that the topic that was silent for longest is dropped."""

Key = tuple[Endpoint, Endpoint, int]
"""Key of a reassembly: sender, receiver or group, and the index of the topic."""


@attrs.frozen
class Large:
    """A message that was sent in pieces: topic index, numbers of its pieces, bytes with properties."""

    topic_index: int
    first: int
    last: int
    size: int
    payload: bytes


Record = (
    lbmr.AnyPacket
    | lbmr_extended.Packet
    | lbtrm.Packet
    | lbtru.Packet
    | lbmc.Message
    | Run
    | Large
    | properties.Properties
    | CoreMessage
    | rsocket.Frame
    | rsocket.RsocketSetup
    | srs.Message
)


@record
class Layer:
    """A decoded layer of a packet.

    Attributes:
        protocol: LBMR, LBT-RM, LBT-RU, LBMC, PROPERTIES, UMP (the meaning of a control message), RSOCKET or SRS.
        kind: Its kind.
        record: All its fields.
        parts: Names of its parts beside the payload: queries, advertisements, headers.
    """

    protocol: str
    kind: str
    record: Record
    parts: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        return f"{self.protocol} {self.kind}"


@record
class LayerProblem:
    """The reason why a frame cannot be decoded."""

    verdict: FrameVerdict
    text: str


@record
class Decoded:
    """The layers of some bytes, from the outermost inwards, and their problems."""

    layers: tuple[Layer, ...] = ()
    problems: tuple[LayerProblem, ...] = ()

    def checked(self, octets: bytes, encode: Callable[[], bytes]) -> "Decoded":
        """Return the same, with a problem if encoding does not reproduce the bytes."""
        try:
            again = encode()
        except WireError as error:
            return attrs.evolve(self, problems=(*self.problems, LayerProblem(FrameVerdict.DIFFERENT, str(error))))
        if again == octets:
            return self
        at = next((at for at, (old, new) in enumerate(zip(octets, again, strict=False)) if old != new), len(again))
        text = f"encoded again it is {len(again)} bytes instead of {len(octets)}, the first difference at {at}"
        return attrs.evolve(self, problems=(*self.problems, LayerProblem(FrameVerdict.DIFFERENT, text)))


@attrs.define
class CapturedLargeMessages:
    """Waiting pieces by topic; `newest` are the full numbers near those of the wire."""

    topics: OrderedDict[Key, FragmentReassembly] = attrs.field(factory=OrderedDict)
    newest: dict[Key, int] = attrs.field(factory=dict)
    held: int = 0

    def reassemble(self, ends: tuple[Endpoint, Endpoint], layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Return the layers of a frame, with a complete message after its last piece."""
        found: list[Layer] = []
        for layer in layers:
            found.append(layer)
            if isinstance(layer.record, lbmc.Message):
                fragment = next((header for header in layer.record.headers if isinstance(header, h.Fragment)), None)
                if fragment is not None:
                    found += self._piece((*ends, layer.record.topic_index), layer.record, fragment)
        return tuple(found)

    def _piece(self, key: Key, message: lbmc.Message, fragment: h.Fragment) -> list[Layer]:
        topic = self.topics.setdefault(key, FragmentReassembly())
        self.topics.move_to_end(key)
        near = self.newest.get(key, message.sequence + serial.MODULUS)  # The message may have begun before the wrap.
        number = self.newest[key] = serial.extend(message.sequence, near)
        before = topic.held
        whole = topic.add(number, ChainedPiece(message.payload, fragment, _properties_length(message)))
        topic.take_passed()
        self.held += topic.held - before
        while self.held > MAX_HELD:
            oldest, given_up = self.topics.popitem(last=False)
            self.held -= given_up.held
            del self.newest[oldest]
        return [] if whole is None else _layers(message.topic_index, whole)


def _properties_length(message: lbmc.Message) -> int:
    chain = next((header for header in message.headers if isinstance(header, h.ApplicationChain)), None)
    return 0 if chain is None else chain.properties_length()


def _layers(topic_index: int, whole: WholeMessage) -> list[Layer]:
    size = len(whole.payload) + len(whole.properties)
    first, last = serial.wire(whole.first), serial.wire(whole.last)
    found = [Layer("LBMC", "LARGE", Large(topic_index, first, last, size, whole.payload))]
    try:
        if whole.properties:
            found.append(Layer("PROPERTIES", "BLOCK", properties.decode(whole.properties)))
    except WireError:
        pass  # The bytes are the application's; each piece was judged by itself.
    return found


def undecoded(verdict: FrameVerdict, text: str) -> Decoded:
    """Return a result with nothing but a problem."""
    return Decoded(problems=(LayerProblem(verdict, text),))


def malformed(error: WireError) -> Decoded:
    """Return the result of bytes that a codec rejects."""
    return undecoded(FrameVerdict.MALFORMED, str(error))


# Topic resolution.


def resolution(octets: bytes, roundtrip: bool) -> Decoded:
    try:
        if len(octets) >= 2 and lbmr_extended.is_queueing(octets):
            return undecoded(FrameVerdict.UNKNOWN, "topic resolution of queues")
        if len(octets) >= 2 and lbmr_extended.is_extended(octets):
            return _extended(octets, roundtrip)
        packet = lbmr.decode(octets)
    except WireError as error:
        return malformed(error)
    decoded = Decoded((_lbmr_layer(packet),), (*_versions(packet.version), *_unknown_options(packet)))
    return decoded.checked(octets, lambda: lbmr.encode(packet)) if roundtrip else decoded


def _extended(octets: bytes, roundtrip: bool) -> Decoded:
    packet = lbmr_extended.decode(octets)
    parts = tuple("TMR" for _ in packet.body.records) if isinstance(packet.body, lbmr_extended.Management) else ()
    layer = Layer("LBMR", names.LBMR_BODIES[type(packet.body)], packet, parts)
    unknown = _unknown_message(packet.body) + _unknown_trailer(packet.options)
    decoded = Decoded((layer,), (*_versions(packet.version), *unknown))
    return decoded.checked(octets, lambda: lbmr_extended.encode(packet)) if roundtrip else decoded


def _unknown_message(body: lbmr_extended.Body) -> list[LayerProblem]:
    """Return the problems of a gateway's message with an unlisted type or unlisted options."""
    match body:
        case lbmr_gateway.Gateway(body=lbmr_gateway.UnknownMessage(type=kind)):
            return [LayerProblem(FrameVerdict.UNKNOWN, f"message {kind} of gateways")]
        case lbmr_gateway.Gateway(body=lbmr_gateway.GatewayContext(options=options)):
            unknown = (option.code for option in options if isinstance(option, lbmr.UnknownOption))
            return [LayerProblem(FrameVerdict.UNKNOWN, f"option {code} of gateways") for code in unknown]
        case _:
            return []


def _versions(version: int) -> tuple[LayerProblem, ...]:
    if version == lbmr.VERSION:
        return ()
    return (LayerProblem(FrameVerdict.MALFORMED, f"topic resolution of version {version}, not {lbmr.VERSION}"),)


def _lbmr_layer(packet: lbmr.AnyPacket) -> Layer:
    if not isinstance(packet, lbmr.Packet):
        return Layer("LBMR", names.LBMR_BODIES[type(packet)], packet)
    query = "WC-TQR" if packet.kind is lbmr.PacketKind.WILDCARD else "TQR"
    parts = (query,) * len(packet.queries) + ("TIR",) * len(packet.advertisements)
    return Layer("LBMR", packet.kind.name, packet, parts)


def _unknown_options(packet: lbmr.AnyPacket) -> list[LayerProblem]:
    found = _unknown_trailer(packet.options)
    for tir in packet.advertisements if isinstance(packet, lbmr.Packet) else ():
        for option in tir.options:
            if isinstance(option, lbmr.UnknownOption):
                found += _listed("option", option.code, len(option.body) + 2, names.TIR_OPTIONS)
        if isinstance(tir.transport, lbmr.UnknownTransport):
            found += _listed("transport", tir.transport.code, len(tir.transport.body), names.TIR_TRANSPORTS)
    return found


def _listed(what: str, code: int, length: int, sizes: Mapping[int, int | None]) -> list[LayerProblem]:
    """Return the problem of a part of an advertisement that is kept as bytes."""
    if code not in sizes:
        return [LayerProblem(FrameVerdict.UNKNOWN, f"{what} {code} of an advertisement")]
    if sizes[code] not in {None, length}:
        text = f"{what} {code} of an advertisement has {length} bytes, not {sizes[code]}"
        return [LayerProblem(FrameVerdict.MALFORMED, text)]
    return []


def _unknown_trailer(options: Sequence[lbmr.PacketOption]) -> list[LayerProblem]:
    unknown = (option.code for option in options if isinstance(option, lbmr.UnknownOption))
    return [LayerProblem(FrameVerdict.UNKNOWN, f"packet option {code}") for code in unknown]


# The reliable transports.


Inside = Callable[[bytes, bool], Decoded]
"""Decode the messages of a datagram."""


def multicast(octets: bytes, roundtrip: bool, inside: Inside | None = None) -> Decoded:
    """Decode a datagram of LBT-RM with its messages."""
    try:
        packet = lbtrm.decode(octets)
    except WireError as error:
        return malformed(error)
    options = tuple(LayerProblem(FrameVerdict.UNKNOWN, f"option {option.code} of LBT-RM") for option in packet.options)
    inner = (inside or messages)(packet.payload, roundtrip) if isinstance(packet, lbtrm.Data) else Decoded()
    layer = Layer("LBT-RM", names.LBTRM[type(packet)], packet)
    decoded = Decoded((layer, *inner.layers), options + inner.problems)
    return decoded.checked(octets, lambda: lbtrm.encode(packet)) if roundtrip else decoded


def unicast(octets: bytes, roundtrip: bool, inside: Inside | None = None) -> Decoded:
    """Decode a datagram of LBT-RU with its messages."""
    try:
        packet = lbtru.decode(octets)
    except WireError as error:
        return malformed(error)
    inner = (inside or messages)(packet.payload, roundtrip) if isinstance(packet, lbtru.Data) else Decoded()
    decoded = Decoded((Layer("LBT-RU", names.LBTRU[type(packet)], packet), *inner.layers), inner.problems)
    return decoded.checked(octets, lambda: lbtru.encode(packet)) if roundtrip else decoded


# Messages.


First = Callable[[bytes, int, bool], tuple[Decoded, int]]
"""Decode what begins at a place, and return where the next message may begin."""


def messages(octets: bytes, roundtrip: bool, first: First | None = None) -> Decoded:
    """Decode LBMC messages back to back; after a malformed one of known length the next one is tried."""
    found, problems, at = list[Layer](), list[LayerProblem](), 0
    while at < len(octets):
        one, at = (first or first_of)(octets, at, roundtrip)
        found += one.layers
        problems += one.problems
    return Decoded(tuple(found), tuple(problems))


def first_of(octets: bytes, at: int, roundtrip: bool) -> tuple[Decoded, int]:
    """Decode the message at `at` in a datagram, and return where the next one may begin."""
    try:
        end = min(at + _length(octets, at), len(octets))
    except WireError as error:
        return malformed(error), len(octets)
    return message(octets[at:end], roundtrip), end


def _length(octets: bytes, at: int) -> int:
    if len(octets) - at < lbmc.PREFIX.size:
        raise WireError(f"{len(octets) - at} bytes are no message")
    return lbmc.frame(octets, at)[1]


_BARE = {
    lbmc.PREFIX.pack(kind, lbmc.NOTHING_FOLLOWS, lbmc.PREFIX.size): Layer("LBMC", kind.name, lbmc.Message(kind))
    for kind in (lbmc.MessageKind.EOT, lbmc.MessageKind.CONTROL)
}
"""Messages without any header, which `lbmc` rejects: they say nothing, but they are no mistake."""


def message(octets: bytes, roundtrip: bool = False) -> Decoded:
    """Decode one LBMC message, its properties, and its meaning if it is a control message."""
    if octets in _BARE:
        return Decoded((_BARE[octets],))
    try:
        decoded, _ = lbmc.decode(octets)
        layers = [Layer("LBMC", decoded.kind.name, decoded, tuple(map(names.header, decoded.headers)))]
        problems = [problem for header in decoded.headers for problem in _header_problems(header, decoded)]
        block = _properties(decoded)
    except WireError as error:
        return malformed(error)
    if block is not None:
        layers.append(Layer("PROPERTIES", "BLOCK", block))
    layers += _meaning(decoded)
    found = Decoded(tuple(layers), tuple(problems))
    return found.checked(octets, lambda: lbmc.encode(_with_properties(decoded, block))) if roundtrip else found


def _header_problems(header: h.Header, carrier: lbmc.Message) -> list[LayerProblem]:
    match header:
        case h.UnknownHeader(code=code):
            known = code in names.HEADERS
            text = f"header {names.HEADERS[code]}" if known else f"there is no header of code {code}"
            return [LayerProblem(FrameVerdict.UNKNOWN if known else FrameVerdict.MALFORMED, text)]
        case h.Fragment(offset=offset, len=length) if offset + len(carrier.payload) > length:
            text = f"a fragment of {len(carrier.payload)} bytes at {offset} of a message of {length}"
            return [LayerProblem(FrameVerdict.MALFORMED, text)]
        case h.ApplicationHeader(data=b""):
            return [LayerProblem(FrameVerdict.MALFORMED, "an application header without data")]
        case _:
            return []


def _properties(carrier: lbmc.Message) -> properties.Properties | None:
    """Return the properties at the end of the payload; those of a large message stand in its last pieces."""
    chains = [header for header in carrier.headers if isinstance(header, h.ApplicationChain)]
    length = chains[0].properties_length() if chains else 0
    if not length or any(isinstance(header, h.Fragment) for header in carrier.headers):
        return None
    if length > len(carrier.payload):
        raise WireError(f"message properties of {length} bytes in a payload of {len(carrier.payload)}")
    return properties.decode(carrier.payload[-length:])


def _with_properties(carrier: lbmc.Message, block: properties.Properties | None) -> lbmc.Message:
    if block is None:
        return carrier
    octets = properties.encode(block)
    return attrs.evolve(carrier, payload=carrier.payload[: -len(octets)] + octets)


def _meaning(carrier: lbmc.Message) -> list[Layer]:
    """Decode the meaning of a control message; others may chain other headers and are not wrong."""
    if carrier.kind is not lbmc.MessageKind.CONTROL:
        return []
    try:
        meant = codec.decode(carrier)
    except WireError:
        return []
    return [Layer("UMP", type(meant).__name__, meant)]


# Topic resolution over TCP.


def resolution_frame(octets: bytes, frame: rsocket.Frame, payload: bytes, roundtrip: bool) -> Decoded:
    """Decode an RSocket frame; `payload` is its contents, with those of the frames that it continues."""
    layers = [Layer("RSOCKET", frame.kind.name, frame)]
    try:
        if frame.kind is rsocket.FrameKind.SETUP:
            layers.append(Layer("RSOCKET", "PARAMETERS", rsocket.parse_setup(frame)))
        said = srs.decode(payload)
    except WireError as error:
        return Decoded(tuple(layers), malformed(error).problems)
    decoded = Decoded((*layers, *(Layer("SRS", names.SRS[type(one)], one) for one in said)))
    if not roundtrip:
        return decoded

    def encode() -> bytes:
        if said and payload == frame.payload:
            return rsocket.encode(attrs.evolve(frame, payload=b"".join(map(srs.encode, said))))
        return rsocket.encode(frame)

    return decoded.checked(octets, encode)
