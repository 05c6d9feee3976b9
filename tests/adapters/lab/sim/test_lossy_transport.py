"""The lossy transport: whatever is sent arrives, comes twice or late, or is said to be lost."""

from random import Random

import pytest

from stablecast.lab.sim.lossy_transport import GIVE_UP_NS, LATE_NS, Lossy, parted
from stablecast.lab.sim.network import VirtualNetwork
from stablecast.lab.sim.process import Greeting, Item, VirtualProcess
from stablecast.lab.sim.virtual_time import VirtualClock, VirtualWorld
from stablecast.transports.codec.fragments import encode_pieces
from stablecast.transports.codec.lbttcp import Run, StreamDecoder

RUNS = 400


class Bare(VirtualProcess):
    """Nothing to drive."""


@pytest.mark.rows("P-410")
def test_nothing_vanishes_without_a_word() -> None:
    """A transport reports the messages that it gives up."""
    world = VirtualWorld(Random(3))
    process = Bare(VirtualNetwork(world), "bare", "10.0.0.9", VirtualClock(0, 0))
    arrived: list[tuple[int, Item]] = []
    lost: list[tuple[int, Run]] = []
    lossy = Lossy(
        process,
        30,
        lambda _, items: arrived.extend((world.now, item) for item in items),
        lambda _, run: lost.append((world.now, run)),
    )
    runs = [Run(1, number, 1, 12, b"") for number in range(RUNS)]
    marker = Greeting(1)
    for run in runs:
        lossy.take(7, [run, marker] if run.first % 2 else [run])
    world.run(GIVE_UP_NS)
    numbers = [item.first for _, item in arrived if isinstance(item, Run)]
    told = {run.first for _, run in lost}
    assert set(numbers) | told == set(range(RUNS))
    assert not set(numbers) & told
    assert len(numbers) > len(set(numbers))
    assert numbers != sorted(numbers)
    assert sum(item is marker for _, item in arrived) == RUNS // 2
    assert max(at for at, _ in arrived) <= LATE_NS
    assert 0.2 * 0.3 * RUNS < len(told) < 0.5 * 0.3 * RUNS


def test_a_run_of_pieces_is_parted_between_two_of_them() -> None:
    """Across the wrap of the numbers; both are runs as they come on a stream."""
    octets = encode_pieces(7, 0xFFFF_FFFE, bytes(range(250)) * 8, 500)
    (run,) = StreamDecoder().feed(b"".join(octets))
    assert isinstance(run, Run)
    for at in range(1, run.count):
        parts = [found for some in (octets[:at], octets[at:]) for found in StreamDecoder().feed(b"".join(some))]
        assert list(parted(run, at)) == parts
