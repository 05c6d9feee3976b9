"""Networks of any shape whose links break and whose routers die, on the virtual clock."""

from collections.abc import Iterable

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stablecast.core.machine.units import MILLISECOND, SECOND
from tests.transports.routing.fabric import Fabric


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Connected networks of up to six routers."""
    count = draw(st.integers(2, 6))
    links = {(draw(st.integers(0, n - 1)), n) for n in range(1, count)}
    for _ in range(draw(st.integers(0, 4))):
        one, other = sorted((draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))))
        if one != other:
            links.add((one, other))
    return count, sorted(links)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "silence", "join", "kill", "want", "leave", "quiet"]),
        st.integers(0, 99),
        st.integers(1, 400),
    ),
    max_size=12,
)
"""What happens, to which link or router, and milliseconds until the next."""


@attrs.define
class Play:
    fabric: Fabric
    number: int = 0

    def pass_time(self, span: int) -> None:
        """Let time pass in which the source sends every 10 ms."""
        end = self.fabric.now + span
        while self.fabric.now < end:
            self.number += 1
            self.fabric.publish(0, self.number)
            self.fabric.run(10 * MILLISECOND)

    def do(self, what: str, which: int, wanting: set[int]) -> None:
        fabric = self.fabric
        link = fabric.links[which % len(fabric.links)]
        router = which % len(fabric.routers)
        up = all(end in fabric.wires for end in fabric.places[link])
        match what:
            case "cut" | "silence":
                fabric.cut(*link, silent=what == "silence")
            case "join" if not up and not any(fabric.routers[a].portals[b].link for a, b in fabric.places[link]):
                fabric.join(*link)
            case "kill" if router:
                fabric.kill(router)
                wanting.discard(router)
            case "want":
                fabric.want(router)
                wanting.add(router)
            case "leave":
                fabric.leave(router)
                wanting.discard(router)
            case _:
                pass


def joined(fabric: Fabric) -> Iterable[tuple[int, int]]:
    return (link for link in fabric.links if any(end not in fabric.wires for end in fabric.places[link]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes(), STEPS)
def test_no_number_comes_twice_and_all_come_when_it_is_quiet(
    shape: tuple[int, list[tuple[int, int]]], steps: list[tuple[str, int, int]]
) -> None:
    """Whatever breaks: no number enters a router or leaves into a domain twice; in a whole network each gets all."""
    count, links = shape
    fabric = Fabric.of(count, *links)
    fabric.source(0)
    play, wanting = Play(fabric), {count - 1}
    fabric.want(count - 1)
    for what, which, span in steps:
        play.do(what, which, wanting)
        play.pass_time(span * MILLISECOND)
    fabric.run(6 * SECOND)
    for link in joined(fabric):
        fabric.join(*link)
    fabric.run(12 * SECOND)
    first = play.number + 1
    play.pass_time(SECOND)
    fabric.run(SECOND)
    assert len(fabric.signatures()) == 1
    assert max(fabric.entered.values(), default=1) == 1
    for router in range(1, count):
        left = fabric.left.get(router + 1, [])
        assert len(left) == len(set(left))
        assert [one for one in left if one >= first] == ([*range(first, play.number + 1)] if router in wanting else [])
    assert not [reason for _, reason in fabric.ended if "differ" in reason or "malformed" in reason]
    for router in wanting - {0}:
        fabric.leave(router)
    fabric.leave(0)
    fabric.run(SECOND)
    assert not any(one.table.sources for one in fabric.routers)
    assert not any(link.told or link.sources for one in fabric.routers for _, link in one.network.links())
