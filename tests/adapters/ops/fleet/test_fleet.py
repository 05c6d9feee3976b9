"""Several stores as one: records that a test chooses, and `stablecast fleet` with real daemons."""

import json
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from stablecast.ops.fleet.copies import FleetSource
from stablecast.ops.fleet.findings import FleetFinding, FleetLook, worst
from stablecast.ops.fleet.history import FleetHistory
from stablecast.ops.fleet.next_steps import STEPS
from stablecast.ops.fleet.page import render
from stablecast.ops.fleet.screen import MAX_FINDINGS, least_safe, screen
from stablecast.ops.fleet.survey import Survey, SurveyedStore
from stablecast.ops.monitor.health import Urgency
from stablecast.sync import Context
from tests.support.daemons import Daemon, daemon, until
from tests.support.program import outcome
from tests.support.tree import ROOT

SECOND = 1_000_000_000


def copy(topic: str = "orders", **more: Any) -> dict[str, Any]:
    return {
        "topic": topic,
        "session_index": 7,
        "topic_index": 1,
        "active": True,
        "replicas": 3,
        "holes": 0,
        "window": [0, 0, 99],
        "sync": [100, 100, 99],
        "findings": [],
        "receivers": [],
        "groups": [more.get("replicas", 3)],
        "group": 0,
        **more,
    }


def receiver(
    acknowledged: int, address: str = "10.0.0.9:1", findings: tuple[dict[str, str], ...] = ()
) -> dict[str, Any]:
    return {"reg_id": 5, "address": address, "session_id": 0, "acknowledged": acknowledged, "findings": findings}


def store(name: str, *sources: dict[str, Any], clock_ns: int = 0, **record: Any) -> SurveyedStore:
    filled = {"name": name, "address": f"10.0.0.{name}:14567", "failure": "", "level": "OK", "findings": [], **record}
    return SurveyedStore(f"http://10.0.0.{name}:15304", filled, [*sources], clock_ns, 1_000_000)


def looked(
    *stores: SurveyedStore, silent: dict[str, str] | None = None
) -> tuple[list[FleetSource], list[FleetFinding]]:
    look = FleetLook.of(Survey([*stores], silent or {}))
    return look.sources, look.findings


def codes(*stores: SurveyedStore, silent: dict[str, str] | None = None) -> dict[str, str]:
    return {one.code: one.line for one in looked(*stores, silent=silent)[1]}


def test_three_stores_that_are_well_have_no_finding() -> None:
    sources, found = looked(*(store(name, copy(receivers=[receiver(90)])) for name in "123"))
    assert found == []
    assert worst(found) is Urgency.OK
    [source] = sources
    assert source.as_json() == {
        "topic": "orders",
        "session_index": 7,
        "topic_index": 1,
        "active": True,
        "replicas": 3,
        "groups": [{"size": 3, "needed": 2, "serving": 3, "safe_through": 99}],
        "needed": 2,
        "serving": 3,
        "newest": 99,
        "safe_through": 99,
        "missing": 0,
        "lag": 9,
        "stores": ["1 (10.0.0.1:14567)", "2 (10.0.0.2:14567)", "3 (10.0.0.3:14567)"],
    }


@pytest.mark.parametrize(
    ("stores", "code", "line"),
    [
        (
            [store("1", copy()), store("2", copy()), store("3", copy(), failure="no space")],
            "last-quorum",
            "topic orders: 2 of 3 stores serve it, and 2 are needed: if one more fails, nothing more becomes stable",
        ),
        (
            [store("1", copy()), store("2", copy(), failure="no space"), store("3", copy(), failure="no space")],
            "no-quorum",
            "topic orders: 1 of 3 stores serve it, and 2 are needed: nothing more becomes stable by a majority",
        ),
        (
            [store("1", copy())],
            "no-quorum",
            (
                "topic orders: 1 of 3 stores serve it, and 2 are needed: nothing more becomes stable by a majority; "
                "2 of them are not among those that answered"
            ),
        ),
        (
            [store("1", copy()), store("2", copy())],
            "unknown-store",
            "topic orders: nothing is known about 1 of its 3 stores: no answer, or not asked",
        ),
        (
            [store("1", copy()), *(store(name, copy(sync=[5000, 5000, 4999])) for name in "23")],
            "behind",
            "topic orders: store 1 (10.0.0.1:14567) lacks 4,900 messages that another store has synced",
        ),
        (
            [store("1", copy()), store("2", copy(), clock_ns=3 * SECOND), store("3", copy())],
            "clock",
            (
                "store 2 (10.0.0.2:14567): its clock is 3 s ahead of that of 1 (10.0.0.1:14567): "
                "set both by one time service"
            ),
        ),
    ],
)
def test_what_only_a_comparison_shows(stores: list[SurveyedStore], code: str, line: str) -> None:
    assert codes(*stores)[code] == line


def in_groups(*sizes: int, silent: tuple[int, ...] = ()) -> list[SurveyedStore]:
    """Return the stores of a source with groups of these sizes; the stores numbered `silent` are not asked."""
    members = [group for group, size in enumerate(sizes) for _ in range(size)]
    copies = [copy(replicas=sum(sizes), groups=[*sizes], group=group) for group in members]
    return [store(str(at), one) for at, one in enumerate(copies) if at not in silent]


def test_each_group_needs_its_own_quorum() -> None:
    """Four of six stores serve, a majority of all of them. The second group has one of three."""
    [source], found = looked(*in_groups(3, 3, silent=(3, 4)))
    assert [(one.level, one.code, one.text) for one in found] == [
        (
            Urgency.CRITICAL,
            "no-quorum",
            (
                "group 1: 1 of 3 stores serve it, and 2 are needed: nothing more becomes stable there; other groups "
                "suffice only by the rule `any`; 2 of them are not among those that answered"
            ),
        )
    ]
    assert (source.spare, source.needed, source.safe_through) == (-1, 4, -1)
    assert [group["serving"] for group in source.as_json()["groups"]] == [3, 1]


def test_no_group_has_a_quorum() -> None:
    """Two of four stores serve, one of each group of two."""
    assert {one.line.partition(";")[0] for one in looked(*in_groups(2, 2, silent=(0, 2)))[1]} == {
        f"topic orders: group {group}: 1 of 2 stores serve it, and 2 are needed: nothing more becomes stable by a "
        "majority"
        for group in (0, 1)
    }


def test_a_group_that_can_lose_no_store() -> None:
    assert codes(*in_groups(3, 3, silent=(5,)))["last-quorum"] == (
        "topic orders: group 1: 2 of 3 stores serve it, and 2 are needed: if one more fails, nothing more becomes "
        "stable there"
    )
    assert codes(*in_groups(3, 3)) == {}


@pytest.mark.parametrize("unknown", [{"groups": [], "replicas": 0}, {"groups": [2, 1], "group": -1}])
def test_groups_that_no_store_knows_are_not_judged(unknown: dict[str, Any]) -> None:
    stores = [store(name, copy(**unknown)) for name in "123"]
    assert codes(*stores) == {
        "groups-unknown": "topic orders: no store knows the groups of its stores yet: its quorum is not judged"
    }
    console = Console(width=120, record=True, file=StringIO())
    console.print(screen(attrs.evolve(FleetLook.of(Survey(stores, {})), findings=[]), 5))
    assert console.export_text().splitlines()[3].split() == ["orders", "3/?", "?", "99", "?", "0", "0"]


def test_a_source_that_is_away_needs_no_quorum() -> None:
    gone = copy(active=False)
    assert codes(store("1", gone), store("2", gone), store("3", gone)) == {}


def test_a_message_is_safe_when_enough_stores_have_it() -> None:
    copies = [copy(sync=[0, 0, number]) for number in (10, 50, 30)]
    sources, _ = looked(*(store(str(at), one) for at, one in enumerate(copies)))
    assert sources[0].safe_through == 30
    sources, _ = looked(store("1", copies[0]))
    assert sources[0].safe_through == -1


def test_a_receiver_is_as_far_as_any_store_knows() -> None:
    near, far = copy(receivers=[receiver(95)]), copy(receivers=[receiver(10), receiver(50, "10.0.0.8:1")])
    sources, _ = looked(store("1", near), store("2", far), store("3", copy()))
    assert sources[0].lag == 49


def test_what_stores_know_is_said_once() -> None:
    slow = {"level": "WARNING", "code": "slow-disk", "text": "the disk is slow"}
    late = {"level": "WARNING", "code": "receiver-late", "text": "5 messages behind"}
    stores = [store(name, copy(receivers=[receiver(90, findings=(late,))]), findings=[slow]) for name in "123"]
    assert codes(*stores) == {
        "slow-disk": "store 1 (10.0.0.1:14567) and 2 more: the disk is slow",
        "receiver-late": "topic orders, receiver 5: 5 messages behind",
    }


def test_a_finding_names_the_command_for_its_own_store_and_client() -> None:
    silent = {"level": "WARNING", "code": "receiver-silent", "text": "inactive"}
    damaged = {"level": "CRITICAL", "code": "damaged", "text": "a record is damaged"}
    stores = [store("1", copy(receivers=[receiver(90, findings=(silent,))])), store("2", copy(), findings=[damaged])]
    found = {one.code: one for one in looked(*stores)[1]}
    assert found["receiver-silent"].step.startswith("stablecast store evict http://10.0.0.1:15304/stores/0 5 ")
    assert found["damaged"].step == "stablecast store scrub http://10.0.0.2:15304/stores/0"
    assert found["damaged"].as_json()["step"] == found["damaged"].step
    assert "step" not in found["unknown-store"].as_json()


def test_steps_are_of_documented_findings() -> None:
    chapters = "".join((ROOT / "spec" / name).read_text(encoding="utf-8") for name in ("monitor.md", "operations.md"))
    assert not [code for code in STEPS if f"\n| `{code}` |" not in chapters]


def test_a_monitor_that_is_silent_is_the_first_thing_to_read() -> None:
    found = looked(store("1", copy()), store("2", copy()), silent={"http://x": "it does not answer"})[1]
    assert found[0].line == "a store whose monitor is http://x: it is down, or cannot be reached: it does not answer"
    assert worst(found) is Urgency.CRITICAL


def test_a_store_that_is_down_has_the_name_that_its_sources_know() -> None:
    """Also if nobody asked its monitor before it went down."""
    named = [f"10.0.0.{name}:14567" for name in "123"]
    known = [store(name, copy(stores=named)) for name in "12"]
    found = looked(*known, silent={"http://10.0.0.3:15304": "connection refused"})[1]
    assert found[0].line == "store 10.0.0.3:14567: it is down, or cannot be reached: connection refused"


def test_what_has_ended_has_no_quorum_to_lose() -> None:
    """It is no problem, stands behind all others, and is not counted."""
    ended = [copy("yesterday", active=False, ended=True), copy("lost", active=False)]
    sources, found = looked(*(store(name, *ended, copy()) for name in "123"))
    assert (found, [one.served(" of ") for one in sources]) == ([], ["silent", "3 of 3", "ended"])
    assert [one.topic for one in sorted(sources, key=least_safe)] == ["orders", "lost", "yesterday"]
    page = render(FleetLook(Survey([store("1", *ended)], {}), sources, found), FleetHistory())
    assert "no quorum" not in page


def test_lives_of_a_topic_are_apart() -> None:
    sources, _ = looked(store("1", copy(), copy(session_index=8, replicas=1), copy("prices", replicas=1)))
    assert [source.life for source in sources] == [("orders", 7, 1), ("orders", 8, 1), ("prices", 7, 1)]


def test_the_screen_begins_with_the_problems() -> None:
    topics = [copy(f"topic{number:02}", replicas=3) for number in range(30)]
    surveyed = Survey([store("1", *topics), store("2", *topics[1:])], {})
    console = Console(width=240, record=True, file=StringIO())
    console.print(screen(FleetLook.of(surveyed), 5))
    lines = console.export_text().splitlines()
    assert lines[0] == "2 stores, 30 sources  CRITICAL"
    assert lines[1].startswith("critical: topic topic00: 1 of 3 stores serve it")
    assert lines[2].startswith("warning: topic topic01 and 28 more: 2 of 3 stores serve it")
    assert [line.split()[0] for line in lines if line.startswith("topic")] == [
        "topic",
        "topic00",
        *(f"topic0{at}" for at in range(1, 5)),
    ]
    assert lines[-1] == "5 of 30 sources, the least safe first"
    many = [FleetFinding(Urgency.NOTICE, "code", (f"s{number}",), f"text {number}") for number in range(30)]
    console.print(screen(FleetLook(surveyed, [], many), 5))
    assert f"and {30 - MAX_FINDINGS} more" in console.export_text()


def shown(*monitors: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the output of the command for programs."""
    status, out, _ = outcome("fleet", *monitors, "--json")
    return status, json.loads(out)


def kill(one: Daemon) -> None:
    one.program.process.kill()
    one.program.process.wait()


def test_real_stores_one_by_one(tmp_path: Path) -> None:
    """Three daemons with a source; then one daemon after the other is killed."""
    with ExitStack() as stack:
        daemons = []
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            daemons.append(stack.enter_context(daemon(tmp_path / name)))
        context = stack.enter_context(Context())
        source = context.source(
            "orders", stores=[each.store for each in daemons], options={"ume_activity_timeout": 60_000}
        )
        source.send_many([b"message"] * 10)
        source.wait_stable_through(9)
        monitors = [each.monitor for each in daemons]
        until(lambda: all(each.sources() and each.sources()[0]["sync"][2] == 9 for each in daemons))
        status, found = shown(*monitors)
        assert (status, found["level"], found["findings"]) == (0, "OK", [])
        [told] = found["sources"]
        assert (told["topic"], told["replicas"], told["serving"], told["safe_through"]) == ("orders", 3, 3, 9)
        kill(daemons[2])
        status, found = shown(*monitors)
        assert (status, [one["code"] for one in found["findings"]]) == (1, ["silent", "last-quorum", "unknown-store"])
        kill(daemons[1])
        status, out, _ = outcome("fleet", *monitors)
        assert (status, "topic orders: 1 of 3 stores serve it, and 2 are needed" in out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["127.0.0.1:9"], "the monitor at http://127.0.0.1:9 does not answer"),
        (["ftp://127.0.0.1"], "is no monitor's address"),
        ([], "Missing argument"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments: list[str], told: str) -> None:
    status, out, err = outcome("fleet", *arguments)
    assert (status != 0, out) == (True, "")
    assert told in err
