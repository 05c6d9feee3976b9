"""tshark as an independent judge of our bytes."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import pytest

from tests.support.left_out import missing

WARNING = 0x00600000
"""Lowest severity in tshark's expert information that is a problem."""


@attrs.frozen
class Packet:
    """One packet as tshark dissects it.

    Attributes:
        protocols: The names of its layers.
        fields: The values of each field in the packet, in order, as tshark shows them.
        problems: Warnings and errors of the dissectors.
    """

    protocols: list[str]
    fields: Mapping[str, list[str]]
    problems: list[str]


def dissect(path: Path, ports: Mapping[str, str], *options: str) -> list[Packet]:
    """Dissect a capture; return its packets.

    Args:
        path: The capture.
        ports: The dissector of each port, as in {"udp.port==12965": "lbmr"}.
        options: Further preferences, as in "lbmc.reassemble_fragments:TRUE".
    """
    tree = ET.fromstring(_run(path, ports, options, "-T", "pdml"))
    return [_packet(node) for node in tree.iter("packet")]


def summary(path: Path, ports: Mapping[str, str], *options: str) -> list[str]:
    """Return the problems that tshark lists for the whole capture. Some belong to no packet."""
    lines = _run(path, ports, options, "-q", "-z", "expert,warn").splitlines()
    return [line.strip() for line in lines if line.strip()[:1].isdigit()]


def matching(path: Path, ports: Mapping[str, str], expression: str, field: str = "frame.number") -> list[str]:
    """Return a field of each packet that passes a display filter."""
    return _run(path, ports, (), "-Y", expression, "-T", "fields", "-e", field).splitlines()


def cut(path: Path, expression: str) -> Path:
    """Write the packets that pass a display filter to a new file beside the capture; return its path."""
    target = path.with_suffix(f".cut{path.suffix}")
    _run(path, {}, (), "-Y", expression, "-w", str(target))
    return target


def _run(path: Path, ports: Mapping[str, str], options: tuple[str, ...], *output: str) -> str:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip(missing("tshark"))
    command = [program, "-n", "-2", "-r", str(path), *output]
    for port, dissector in ports.items():
        command += ["-d", f"{port},{dissector}"]
    for option in options:
        command += ["-o", option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _packet(node: ET.Element) -> Packet:
    fields: dict[str, list[str]] = {}
    problems = []
    for field in node.iter("field"):
        fields.setdefault(field.get("name", ""), []).append(field.get("show", ""))
        if field.get("name") == "_ws.expert":
            shown = {inner.get("name"): inner.get("show", "") for inner in field.iter("field")}
            if int(shown["_ws.expert.severity"] or "0", 0) >= WARNING:
                problems.append(shown["_ws.expert.message"] or "")
    protocols = [proto.get("name", "") for proto in node.iter("proto")]
    problems += [name for name in protocols if name == "_ws.malformed"]
    return Packet(protocols, fields, problems)
