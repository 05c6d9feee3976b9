"""The conductor: each fault has its effect while it lasts, and none afterwards."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.core.protocol.effects import Client
from stablecast.core.protocol.messages import StoreMemory
from stablecast.core.store.registry import Registry
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.application_history import Line
from stablecast.lab.whole.conductor import Conductor
from stablecast.lab.whole.history_checker import judge
from stablecast.lab.whole.schedule import RECEIVERS, ROUTER, SOURCE, STORES, Setup, WorldSchedule
from stablecast.lab.world.descriptor_calls import DESCRIPTOR_LIMIT
from stablecast.lab.world.world import World
from stablecast.store import declaration

AT, SPAN = 1_500, 700
MS = 1_000_000


class Played:
    """A world that was played, and what `probe` found when each fault was about to end, and after all was settled."""

    def __init__(self, faults: list[Fault], probe: Callable[[Conductor], Any], **setup: Any) -> None:
        self.found: list[Any] = []
        self.schedule = WorldSchedule(4, Setup(**setup), tuple(faults))
        self.world = World(4)
        self.conductor = conductor = Conductor(self.world, self.schedule, traced=False)
        mend, end = conductor._mend, conductor._end

        def mend_observed(fault: Fault) -> None:
            self.found.append(probe(conductor))
            mend(fault)

        async def end_observed() -> None:
            self.found.append(probe(conductor))
            await end()

        conductor._mend, conductor._end = mend_observed, end_observed  # type: ignore[method-assign]
        self.world.run(conductor.run)
        self.violations = judge(conductor.lines, conductor.printed(), self.schedule.setup.receivers).violations

    def lines(self, what: str) -> list[Line]:
        return [line for line in self.conductor.lines if line["is"] == what]

    def begun(self, who: str) -> int:
        return sum(line["run"].partition(".")[0] == who for line in self.lines("begin"))


def fault(do: Kind, who: str, **more: Any) -> Fault:
    return Fault(AT, do, who, SPAN, **more)


def gone(conductor: Conductor) -> set[str]:
    return {name for name, process in conductor.processes.items() if process.gone}


@pytest.mark.parametrize(
    ("do", "who"),
    [
        (Kind.KILL, SOURCE), (Kind.KILL, "store1"), (Kind.KILL, "finder"), (Kind.POWER, "store2"),
        (Kind.POWER, "receiver0"),
        (Kind.CLOSE, SOURCE), (Kind.CLOSE, "store1"), (Kind.CLOSE, "finder"), (Kind.LEAVE, "receiver1"),
    ],
)  # fmt: skip
def test_a_program_ends_and_starts_again(do: Kind, who: str) -> None:
    played = Played([fault(do, who)], gone)
    assert played.found == [{who}, set()]
    assert played.violations == []
    if who in (SOURCE, *RECEIVERS):
        assert played.begun(who) == 2


def test_all_hosts_lose_their_power_at_once() -> None:
    played = Played([fault(Kind.BLACKOUT, SOURCE)], gone)
    assert played.found == [{SOURCE, *RECEIVERS, *STORES, "finder"}, set()]
    assert played.violations == []


def test_a_stopped_program_does_nothing() -> None:
    played = Played([fault(Kind.STOP, SOURCE)], lambda conductor: conductor.processes[SOURCE].runs)
    assert played.found == [False, True]
    began = next(line["t"] for line in played.lines("fault"))
    assert not [line for line in played.lines("sent") if began < line["t"] < began + SPAN * MS]
    assert played.violations == []


@pytest.mark.parametrize(("do", "both"), [(Kind.CUT, True), (Kind.MUTE, False)])
@pytest.mark.parametrize("other", ["", "store0"])
def test_links_are_cut(do: Kind, both: bool, other: str) -> None:
    def cut(conductor: Conductor) -> set[tuple[str, str]]:
        hosts = conductor.world.hosts
        names = conductor.names
        return {(a, b) for a in names for b in names if a != b and conductor.world.network.path(
            hosts[a].address, hosts[b].address).cut}  # fmt: skip

    played = Played([fault(do, SOURCE, other=other)], cut)
    others = {other} if other else {*RECEIVERS, *STORES, "finder"}
    expected = {(SOURCE, name) for name in others} | {(name, SOURCE) for name in others if both}
    assert played.found == [expected, set()]
    assert played.violations == []


PARTS = ("receiver0", "store2")


@pytest.mark.parametrize(
    ("other", "struck"),
    [("far", {*PARTS, "finder1"}), ("near", {SOURCE, "receiver1", "store0", "store1", "finder"})],
)
def test_a_router_is_cut_off_from_one_side(other: str, struck: set[str]) -> None:
    def reached(conductor: Conductor) -> set[str]:
        at, network = conductor.world.hosts, conductor.world.network
        reaches = {name for name in conductor.names if network.passes(at[ROUTER].address, at[name].address)}
        assert not any(network.passes(at[one].address, at[SOURCE].address) for one in (*PARTS, "finder1"))
        return {*conductor.names} - reaches

    played = Played([fault(Kind.CUT, ROUTER, other=other)], reached, far=PARTS)
    assert played.found == [struck, set()]
    assert played.violations == []


@pytest.mark.parametrize("do", [Kind.KILL, Kind.POWER, Kind.CLOSE])
@pytest.mark.parametrize("finder", ["relays", "services", "both"])
def test_a_router_ends_and_starts_again(do: Kind, finder: str) -> None:
    played = Played([fault(do, ROUTER)], gone, far=PARTS, finder=finder)
    assert played.found == [{ROUTER}, set()]
    assert played.violations == []


def test_a_slow_router_delays_each_packet() -> None:
    def delay(conductor: Conductor) -> int:
        at = conductor.world.hosts
        return conductor.world.network.path(at[ROUTER].address, at["store2"].address).delay_ns // MS

    played = Played([fault(Kind.SLOW, ROUTER, amount=30)], delay, far=PARTS)
    assert played.found == [30, 0]
    assert played.violations == []


def test_noise_is_on_the_paths_of_the_host() -> None:
    def loss(conductor: Conductor) -> list[float]:
        at = [conductor.world.hosts[name].address for name in ("store0", "store1", "store2")]
        network = conductor.world.network
        return [network.path(at[0], at[1]).loss, network.path(at[1], at[0]).loss, network.path(at[1], at[2]).loss]

    assert Played([fault(Kind.NOISE, "store0", amount=20)], loss).found == [[0.2, 0.2, 0.0], [0.0, 0.0, 0.0]]


def test_a_reset_breaks_the_connections_of_a_host() -> None:
    def ends(conductor: Conductor) -> set[int]:
        return {id(end) for end in conductor.world.network.ends}

    plain, reset = (Played([fault(do, "store0")], ends) for do in (Kind.SLOW, Kind.RESET))
    assert plain.found[0] != reset.found[0]
    assert reset.violations == []


@pytest.mark.parametrize("amount", [1, 2, 3])
def test_a_store_with_a_failing_disk_ends_and_returns(amount: int) -> None:
    """Odd numbers fail syncs, with and without the loss of the data; even ones fail writes."""
    played = Played([fault(Kind.FAIL, "store1", amount=amount)], gone)
    assert played.found == [{"store1"}, set()]
    assert played.violations == []


def outlived(do: Kind) -> list[Fault]:
    """One store is away while messages become stable, another loses its disk, and the third returns last."""
    return [
        Fault(100 if do is Kind.RESTORE else 2_000, do, "store1", 2_500 if do is Kind.RESTORE else 600),
        Fault(400, Kind.KILL, "store2", 2_100),
        Fault(1_900, Kind.KILL, "store0", 2_700),
        Fault(1_950, Kind.KILL, SOURCE, 1_500),
    ]


def no_marks(_: Registry, client: Client, _memory: StoreMemory) -> Client:
    return client


@pytest.mark.parametrize("do", [Kind.WIPE, Kind.RESTORE])
def test_a_store_that_lost_its_disk_is_judged(do: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """It votes for nothing that it does not know. If it did, messages would be lost, and that would be found."""
    assert Played(outlived(do), lambda conductor: None).violations == []
    monkeypatch.setattr(Registry, "mark", no_marks)
    monkeypatch.setattr(declaration, "marked", lambda client: client)
    monkeypatch.setattr(Registry, "mute", lambda *_: None)
    assert Played(outlived(do), lambda conductor: None).violations != []


def test_a_full_disk_stops_one_store() -> None:
    played = Played([fault(Kind.FULL, "store1", amount=1_000)], lambda conductor: None)
    assert played.violations == []
    assert "store1.1" in played.conductor.printed()


def test_scarce_descriptors_return() -> None:
    played = Played([fault(Kind.SCARCE, SOURCE, amount=2)], lambda conductor: conductor.processes[SOURCE].limit)
    assert played.found[0] < DESCRIPTOR_LIMIT
    assert played.found[1] == DESCRIPTOR_LIMIT


def test_clocks_leap_and_drift() -> None:
    def ahead(conductor: Conductor) -> bool:
        return conductor.world.hosts[SOURCE].clock.wall_ns() > conductor.world.hosts["store0"].clock.wall_ns()

    assert Played([fault(Kind.LEAP, SOURCE, amount=3_000)], ahead).found[0]
    assert Played([fault(Kind.DRIFT, SOURCE, amount=20_000)], ahead).found[0]


def test_a_twin_lives_beside_the_first_for_the_span() -> None:
    def twins(conductor: Conductor) -> list[bool]:
        return [process.gone for process in conductor.world.hosts["source-twin"].processes]

    played = Played([fault(Kind.TWIN, SOURCE)], twins)
    assert played.found == [[False], [True]]
    assert played.begun("source-twin") == 1
    assert played.violations == []


def test_a_program_that_ends_by_itself_is_marked() -> None:
    """A killed process that the conductor did not strike."""

    def kill(conductor: Conductor) -> None:
        process = conductor.processes["store2"]
        if not process.killed:
            process.kill()

    assert {text.partition(":")[0] for text in Played([fault(Kind.SLOW, "store0")], kill).violations} == {"ended"}


def test_a_store_of_a_failed_disk_may_end() -> None:
    played = Played([fault(Kind.FAIL, "store2", amount=0)], gone)
    assert played.violations == []


@pytest.mark.parametrize(
    "setup",
    [
        {"topics": ("orders", "trades")}, {"handles": 2}, {"second": True}, {"daemon": True}, {"named": True},
        {"ids": "regid"}, {"ids": "new"}, {"named": True, "ids": "regid"}, {"hasty": True, "burst": 5},
        {"ending": "deregister"}, {"late": True}, {"modes": ("explicit", "slow")}, {"finder": "both"},
        {"finder": "relays"}, {"finder": "services"}, {"finder": "multicast"},
        {"options": (("ume_store_group", "0:2,1:1"), ("ume_retention_intergroup_stability_behavior", "any"))},
    ],
    ids=str,
)  # fmt: skip
def test_each_setup_serves_everybody(setup: dict[str, Any]) -> None:
    played = Played([fault(Kind.KILL, SOURCE), fault(Kind.CLOSE, RECEIVERS[0])], lambda _: None, **setup)
    assert played.violations == []
    due = len(played.schedule.setup.receivers)
    verdict = judge(played.conductor.lines, {}, played.schedule.setup.receivers)
    assert verdict.stable > 10
    assert verdict.delivered >= due * verdict.stable


def test_a_second_disk_is_lost_only_when_the_first_store_has_its_messages_back() -> None:
    """The condition of the guarantees: a minority loses its disks between two refills."""

    def struck(at_ms: int) -> list[str]:
        faults = [Fault(1_000, Kind.WIPE, "store1", 500), Fault(at_ms, Kind.WIPE, "store2", 500)]
        schedule = WorldSchedule(5, Setup(pause_ms=240), tuple(faults), horizon_ms=at_ms + 1_000)
        world = World(5)
        conductor = Conductor(world, schedule, traced=False)
        world.run(conductor.run)
        assert judge(conductor.lines, conductor.printed(), RECEIVERS).violations == []
        return [line["who"] for line in conductor.lines if line["is"] == "fault"]

    assert struck(1_200) == ["store1"], "it is away"
    assert struck(12_000) == ["store1", "store2"]
