"""The demo on the wire: the public dissectors and our own decoder accept every message.

The test needs the right to capture on the loopback interface.
"""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from stablecast.evidence.capture.decoder import FAULTS, packets
from stablecast.evidence.capture.ip import FrameVerdict
from stablecast.evidence.capture.judge import RuleStanding, judge
from tests.support import tshark
from tests.support.captures import count
from tests.support.left_out import missing
from tests.support.program import outcome

BUFFER_MB = "32"
MESSAGES = 200


@contextmanager
def captured(path: Path) -> Iterator[None]:
    """Capture the traffic of the loopback interface, from before the body to after it."""
    program = shutil.which("dumpcap")
    if program is None:
        pytest.skip(missing("dumpcap"))
    command = [program, "-q", "-i", "lo", "-f", "tcp or udp", "-B", BUFFER_MB, "-w", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as dumpcap:
        try:
            assert dumpcap.stderr is not None
            lines: list[str] = []
            while not (line := dumpcap.stderr.readline()).startswith("File:"):
                assert line, f"dumpcap does not capture (it needs root or its group): {''.join(lines)}"
                lines.append(line)
            yield
        finally:
            dumpcap.send_signal(signal.SIGINT)
            dumpcap.communicate()


def undecoded(path: Path, ports: Mapping[str, str], streams: str) -> list[str]:
    """Return the frames with our data that belong to no decoded message.

    Two kinds are left out: a last message that a kill cut off, and bytes that a busy machine sent twice, because the
    dissectors decode those once.
    """
    ours = f"{streams} and tcp.len > 0 and not tcp.analysis.retransmission"
    rest = tshark.matching(path, ports, f"{ours} and not lbttcp and not tcp.reassembled_in")
    return [frame for frame in rest if followed(path, ports, frame)]


def followed(path: Path, ports: Mapping[str, str], frame: str) -> list[str]:
    """Return the frames with data after this one in the same direction of its connection."""
    (stream,), (port,) = (
        tshark.matching(path, ports, f"frame.number == {frame}", field) for field in ("tcp.stream", "tcp.srcport")
    )
    later = f"tcp.stream == {stream} and tcp.srcport == {port} and tcp.len > 0 and frame.number > {frame}"
    return tshark.matching(path, ports, later)


@pytest.mark.rows("M-023")
def test_public_dissectors_decode_the_whole_demo(tmp_path: Path) -> None:
    everything = tmp_path / "demo.pcapng"
    with captured(everything):
        status, out, err = outcome("demo", "--json", "--messages", str(MESSAGES), "--seconds", "3")
    assert (status, err) == (0, "")
    used = json.loads(out)["ports"]
    ports = {f"udp.port=={port}": "lbmr" for port in used["lbmr"]}
    ports |= {f"tcp.port=={port}": "lbttcp" for port in used["lbttcp"]}
    resolution, streams = (
        f"{protocol}.port in {{{', '.join(map(str, used[name]))}}}"
        for protocol, name in (("udp", "lbmr"), ("tcp", "lbttcp"))
    )
    path = tshark.cut(everything, f"{resolution} or {streams}")  # other programs may use this interface, too

    assert [line for line in tshark.summary(path, ports) if "LBM" in line or "LBT" in line] == []
    assert tshark.matching(path, ports, "_ws.malformed") == []
    assert tshark.matching(path, ports, f"{resolution} and not icmp and not lbmr") == []
    assert undecoded(path, ports, streams) == []
    assert len(tshark.matching(path, ports, "lbmr and not icmp")) > 10
    payloads = tshark.matching(path, ports, "lbttcp and data.data", "data.data")
    sent = {bytes.fromhex(octets) for line in payloads for octets in line.split(",")}
    assert {b"message %d" % number for number in range(MESSAGES)} <= sent

    judged = judge(path)
    assert [one for one in judged.found if one.standing is RuleStanding.BROKEN] == []
    # S2 judges the messages of a later life. On a busy machine the killed life may have sent all messages already.
    assert {rule for rule, _ in judged.standings} >= {"P7", "A4", "D3", "R1"}

    tally = count(packets(path, roundtrip=True))
    faults = {verdict for verdict in FAULTS if tally.frames[verdict]}
    assert faults <= {FrameVerdict.INCOMPLETE}  # a kill may cut off a message
    assert tally.types["LBMC DATA"] >= MESSAGES
    assert tally.types["UMP Register"] > 0
