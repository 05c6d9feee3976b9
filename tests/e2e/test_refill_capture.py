"""A refill on the wire: the public dissectors accept everything that a wiped store and its peers exchange.

The test needs the right to capture on the loopback interface.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from stablecast.sync import Context
from tests.e2e.test_capture import captured, undecoded
from tests.support import tshark
from tests.support.daemons import Daemon, daemon, until
from tests.support.program import running

MESSAGES = 300
LASTING = {"ume_activity_timeout": 60_000}
"""The stores keep the messages of a life that ended."""


def wiped(one: Daemon, folder: Path) -> None:
    """Kill a daemon and remove its disk, but not its configuration."""
    one.program.process.kill()
    one.program.process.wait()
    for old in folder.iterdir():
        if old.name != "store.toml":
            old.unlink()


@pytest.mark.rows("M-023")
def test_public_dissectors_decode_a_whole_refill(tmp_path: Path) -> None:
    everything = tmp_path / "refill.pcapng"
    with ExitStack() as stack:
        daemons = []
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            daemons.append(stack.enter_context(daemon(tmp_path / name)))
        stores = [one.store for one in daemons]
        with Context(session_id=1) as context:  # The next life retains none of its messages.
            source = context.source("orders", stores=stores, options=LASTING)
            source.send_many(b"message %d" % number for number in range(MESSAGES))
            source.wait_stable_through(MESSAGES - 1)
            until(lambda: all([source["messages"] for source in one.sources()] == [MESSAGES] for one in daemons))
        wiped(daemons[0], tmp_path / "a")
        with captured(everything):
            # `--new` spares the test the waiting time. No other store of it starts meanwhile.
            program = stack.enter_context(running("store", tmp_path / "a" / "store.toml", "--new", "--json"))
            program.json_line()
            with Context(session_id=1) as context:
                context.source("orders", stores=stores, options=LASTING)
                until(lambda: [source["refilled"] for source in daemons[0].sources()] == [MESSAGES])
    listens = [store.rpartition(":")[2] for store in stores]
    ports = {f"tcp.port=={port}": "lbttcp" for port in listens}
    streams = f"tcp.port in {{{', '.join(listens)}}}"
    path = tshark.cut(everything, streams)  # Other programs may use this interface, too.

    assert [line for line in tshark.summary(path, ports) if "LBM" in line or "LBT" in line] == []
    assert tshark.matching(path, ports, "_ws.malformed") == []
    assert undecoded(path, ports, streams) == []
    peers = f"tcp.dstport in {{{listens[1]}, {listens[2]}}}"
    asked = tshark.matching(path, ports, f"lbmc.ume_rxreq and {peers}", "lbmc.ume_rxreq.seqnum")
    assert asked  # The wiped store asks as a receiver would.
    payloads = tshark.matching(path, ports, "lbttcp and data.data", "data.data")
    came = {bytes.fromhex(octets) for line in payloads for octets in line.split(",")}
    assert came == {b"message %d" % number for number in range(MESSAGES)}
