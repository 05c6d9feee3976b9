"""Packets and counts as text and as JSON objects."""

from collections.abc import Iterator
from enum import Enum

import attrs

from stablecast.core.machine.units import MICROSECOND
from stablecast.evidence.capture.decoder import FAULTS, CapturePacket, CaptureTally
from stablecast.evidence.capture.ip import Endpoint, FrameVerdict, endpoint_text
from stablecast.evidence.capture.layers import Layer
from stablecast.evidence.capture.ports import PortPlan
from stablecast.text import plural
from stablecast.transports.wire import lbmc, lbmr, lbmr_extended

MAX_TEXT = 60
"""Characters of a field's value in a line, at most."""
MAX_FIELDS = 8
"""Fields of a record in a line, at most."""
_HIDDEN = {"payload", "octets", "kind", "options", "version"}
"""Fields that appear otherwise, or are too long for a line."""
_NOTHING = {FrameVerdict.PART: "a piece", FrameVerdict.DECODED: "no data"}
"""Texts of packets without layers and without problems."""


def line(packet: CapturePacket, plan: PortPlan, first_ns: int) -> str:
    """Return a packet in one line: frame, seconds since the first one, ends, layers, problems."""
    number = f"{packet.number:6}" if packet.number else "   end"
    seconds = (packet.time_ns - first_ns) // MICROSECOND / 1_000_000
    meant = [layer.protocol == "UMP" for layer in packet.layers[1:]] + [False]
    layers = "; ".join(_layer(layer, packet, plan, told) for layer, told in zip(packet.layers, meant, strict=False))
    what = layers or _NOTHING.get(packet.verdict, "")
    said = f"{number} {seconds:.6f} {_end(packet.source)} > {_end(packet.target)} {what}".rstrip()
    problems = "".join(f" [{problem.verdict.value.upper()}: {problem.text}]" for problem in packet.problems)
    frames = [str(number) for number, _ in packet.settles]
    return said + problems + (f" (with frames {', '.join(frames)})" if frames else "")


def _end(endpoint: Endpoint | None) -> str:
    return endpoint_text(endpoint) if endpoint else "?"


def _layer(layer: Layer, packet: CapturePacket, plan: PortPlan, told: bool) -> str:
    """Return a layer; leave out the fields of its headers if the next layer has their meaning."""
    parts = f" [{', '.join(layer.parts)}]" if layer.parts else ""
    match layer.record:
        case lbmc.Message() as message if message.kind in lbmc.PAYLOAD_KINDS:
            name = plan.topic(packet.transport, message.topic_index) if packet.transport else None
            topic = f"{message.topic_index}" + (f" ({name})" if name else "")
            return f"{layer.type} topic={topic} sqn={message.sequence} {len(message.payload)} bytes{parts}"
        case lbmc.Message() as message if not told:
            pairs = zip(layer.parts, message.headers, strict=True)
            return f"{layer.type} [{', '.join(name + _fields(header) for name, header in pairs)}]"
        case lbmc.Message():
            return f"{layer.type}{parts}"
        case lbmr_extended.Packet(body=body):
            return f"{layer.type}{parts}{_fields(body)}"
        case lbmr.Packet() as found:
            names = [query.name if isinstance(query, lbmr.TopicQuery) else query.pattern for query in found.queries]
            names += [f"{tir.name}={tir.index}" for tir in found.advertisements]
            return f"{layer.type}{parts}" + (f" {', '.join(names)}" if names else "")
        case record:
            return f"{layer.type}{parts}{_fields(record)}"


def _fields(record: object) -> str:
    shown = []
    fields: tuple[attrs.Attribute[object], ...] = attrs.fields(type(record))  # type: ignore[arg-type]
    for field in fields:
        value = getattr(record, field.name)
        if value != field.default and field.name not in _HIDDEN:
            text = str(_plain(value))
            shown.append(f"{field.name}={text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + '...'}")
    rest = len(shown) - MAX_FIELDS
    return "".join(f" {text}" for text in shown[:MAX_FIELDS]) + (f" and {rest} more" if rest > 0 else "")


def record(packet: CapturePacket) -> dict[str, object]:
    """Return a packet for machines: bytes as hexadecimal digits, enumerations by their names."""
    return {
        "frame": packet.number,
        "offset": packet.offset,
        "time_ns": packet.time_ns,
        "source": _end(packet.source),
        "target": _end(packet.target),
        "kind": packet.kind.value if packet.kind else None,
        "session": packet.session,
        "verdict": packet.verdict.value,
        "problems": [problem.text for problem in packet.problems],
        "settles": {number: verdict.value for number, verdict in packet.settles},
        "layers": [
            {"type": layer.type, "parts": layer.parts, "fields": _plain(layer.record)} for layer in packet.layers
        ],
    }


def _plain(value: object) -> object:
    """Return a value as JSON; records name their class, because there are unions."""
    match value:
        case bytes():
            return value.hex()
        case Enum():
            return value.name or value.value
        case tuple() | list():
            return [_plain(item) for item in value]
        case _ if attrs.has(type(value)):
            names = (field.name for field in attrs.fields(type(value)))  # type: ignore[arg-type]
            return {"record": type(value).__name__, **{name: _plain(getattr(value, name)) for name in names}}
        case _:
            return value


def summary(tally: CaptureTally) -> Iterator[str]:
    """Yield the counts by type and the verdict, line by line."""
    for name, count in sorted(tally.types.items()):
        yield f"{count:8} {name}"
    others = ", ".join(f"{tally.frames[verdict]} {verdict.value}" for verdict in (*FAULTS, FrameVerdict.OTHER))
    yield f"{plural(tally.packets, 'packet')}: {tally.frames[FrameVerdict.DECODED]} decoded, {others}"
