"""Rules across endpoints: traces of a whole world bear each other out; what one of them made up, another one denies."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from stablecast.core.machine.ranges import RangeSet
from stablecast.core.protocol.messages import Role
from stablecast.evidence.trace import container
from stablecast.evidence.trace.cross_ground import Told, Witness
from stablecast.evidence.trace.cross_rules import LOSSES, CrossFinding, at_least, judge_across
from stablecast.evidence.trace.facts import Fact
from stablecast.evidence.trace.file_names import find, part_path
from stablecast.evidence.trace.trace_judge import verify_paths
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw, with_earlier
from tests.adapters.evidence.trace.cross_faults import (
    CROSS_FAULTS,
    Found,
    World,
    count_on_an_ack_that_was_never_given,
    put_world_together,
    take_world_apart,
)
from tests.adapters.evidence.trace.test_trace_judge import without_frame
from tests.adapters.evidence.trace.traced import Frames


def test_a_world_bears_itself_out_as_far_as_it_is_known(traces: Path) -> None:
    summary = verify_paths(find([traces]))
    assert summary.violations == []
    assert all(text.startswith(("P6", "D1", "A3", "S1", "H1")) for text in summary.untold), "three were killed"


@pytest.mark.parametrize("fault", CROSS_FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_blamed_on_the_endpoint_and_the_record(
    whole_world: Path, tmp_path: Path, fault: Callable[[World], Found]
) -> None:
    world = take_world_apart(whole_world)
    name, record, rule = fault(world)
    put_world_together(tmp_path / "world", world)
    summary = verify_paths(find([tmp_path / "world"]))
    found = {(one.path.name.partition("-")[0], one.record, one.rule) for one in summary.violations}
    assert (name, record, rule) in found


def change_a_snapshot_of(frames: Frames) -> None:
    frames[2][0]["snapshot"]["config"]["proxy_interval_ns"] += 1


def drop_a_frame_of(frames: Frames) -> None:
    without_frame(frames, 1)


@pytest.mark.parametrize("spoil", [change_a_snapshot_of, drop_a_frame_of])
def test_a_trace_with_a_defect_confirms_nothing(
    whole_world: Path, tmp_path: Path, spoil: Callable[[Frames], None]
) -> None:
    """The acknowledgement that was never given may have been: the store's trace is not whole."""
    world = take_world_apart(whole_world)
    _, record, rule = count_on_an_ack_that_was_never_given(world)
    put_world_together(tmp_path / "whole", world)
    assert (record, rule) in [(one.record, one.rule) for one in verify_paths(find([tmp_path / "whole"])).violations]
    for name in world:
        if name.startswith("store"):
            spoil(world[name])
    put_world_together(tmp_path / "spoilt", world)
    summary = verify_paths(find([tmp_path / "spoilt"]))
    assert rule not in {one.rule for one in summary.violations}
    assert rule in {text[:2] for text in summary.untold}


def test_a_trace_of_which_a_part_cannot_be_read_confirms_nothing(whole_world: Path, tmp_path: Path) -> None:
    world = take_world_apart(whole_world)
    *_, rule = count_on_an_ack_that_was_never_given(world)
    put_world_together(tmp_path, world)
    for path in tmp_path.glob("store*"):
        octets, middle = path.read_bytes(), container.offsets(path)[2]
        path.write_bytes(b"something else")
        part_path(path, 1).write_bytes(octets[middle:])
    summary = verify_paths(find([tmp_path]))
    assert rule not in {one.rule for one in summary.violations}
    assert rule in {text[:2] for text in summary.untold}


# The rules by themselves.

LIFE, OLDER = 7, 6
A, B, C = "a:1", "b:1", "c:1"


def fact(kind: str, first: int, last: int, peer: str = "", life: int = LIFE, time: int = 0, record: int = 0) -> Fact:
    return Fact(kind, record, time, life, peer, first, last)


def store(address: str, *, complete: bool = True, ended: int = 0) -> Witness:
    return Witness(address, Role.STORE, address, 0, complete, ended, 10)


def source(life: int = LIFE, *, complete: bool = True) -> Witness:
    return Witness(f"s{life}", Role.SOURCE, "s:1", life, complete, 0, 0)


def reader(name: str = "r", *, complete: bool = True) -> Witness:
    return Witness(name, Role.RECEIVER, "r:1", LIFE, complete, 0, 0)


def judged(witnesses: list[Witness], **facts: list[Fact]) -> CrossFinding:
    """Judge facts by the trace that states them."""
    told = [Told(trace, trace, 0, one) for trace, some in facts.items() for one in some]
    return judge_across(told, witnesses)


def rules(finding: CrossFinding) -> list[tuple[str, str, int]]:
    return [(one.rule, one.path, one.number) for one in finding.suspects]


def asking(*groups: tuple[int, list[str]], enough: int = 1, life: int = LIFE) -> list[Fact]:
    """Return the facts about a source's groups: the numbers of which stores."""
    facts = [fact("asks", -1, enough, life=life)]
    for number, (needed, stores) in enumerate(groups):
        facts.append(fact("asks", number, needed, life=life))
        facts += [fact("member", number, int(address[0], 36), address, life) for address in stores]
    return facts


def keeping(**stores: tuple[int, int]) -> dict[str, list[Fact]]:
    return {f"{name}:1": [fact("held", first, last, f"{name}:1")] for name, (first, last) in stores.items()}


@pytest.mark.rows("P-302", "P-515")
def test_stable_is_what_enough_stores_hold() -> None:
    """S1 of one group: a quorum must hold each number, and be there to say so. P-302, P-515."""
    group = asking((2, [A, B, C]))
    stores = [store(A), store(B), store(C)]
    kept = keeping(a=(0, 9), b=(0, 4), c=(3, 7))
    assert rules(judged([*stores, source()], s7=[*group, fact("stable", 0, 7)], **kept)) == []
    assert rules(judged([*stores, source()], s7=[*group, fact("stable", 5, 9)], **kept)) == [("S1", "s7", 8)]
    unsure = [store(A), store(B, complete=False), store(C)]
    assert rules(judged([*unsure, source()], s7=[*group, fact("stable", 5, 9)], **kept)) == [], "b may hold it"
    nobody = [store(A, complete=False), store(B, complete=False)]
    finding = judged([*nobody, source()], s7=[*group, fact("stable", 5, 9)], **kept)
    assert rules(finding) == []
    assert [text.partition(" ")[0] for text in finding.untold] == ["S1"]


@pytest.mark.rows("P-517", "P-523")
def test_as_many_groups_must_hold_a_number_as_the_source_asks_for() -> None:
    """S1 of several groups. P-517, P-523."""
    groups, stores = ((1, [A]), (1, [B]), (1, [C])), [store(A), store(B), store(C)]
    kept, stable = keeping(a=(0, 9), b=(0, 4)), fact("stable", 0, 9)
    assert rules(judged([*stores, source()], s7=[*asking(*groups, enough=1), stable], **kept)) == []
    assert rules(judged([*stores, source()], s7=[*asking(*groups, enough=2), stable], **kept)) == [("S1", "s7", 5)]
    unsure = [store(A), store(B), store(C, complete=False)]
    assert rules(judged([*unsure, source()], s7=[*asking(*groups, enough=2), stable], **kept)) == []
    assert rules(judged([*unsure, source()], s7=[*asking(*groups, enough=3), stable], **kept)) == [("S1", "s7", 5)]


@pytest.mark.rows("P-207")
def test_a_store_that_moved_is_known_by_all_its_addresses() -> None:
    """Rule S1 follows a moved store (P-207)."""
    facts = [*asking((1, [A])), fact("member", 0, 10, B), fact("stable", 0, 9)]
    kept = keeping(a=(0, 4), b=(5, 9))
    assert rules(judged([store(A), store(B), source()], s7=facts, **kept)) == []


@pytest.mark.rows("P-502")
def test_in_turns_one_store_must_hold_what_is_stable() -> None:
    """S1, P-502; another life may have a store of its own."""
    group, stores = asking((1, [A, B])), [store(A), store(B), source()]
    kept = keeping(a=(0, 9), b=(10, 19))
    assert rules(judged(stores, s7=[*group, fact("turned", 5, 15)], **kept)) == []
    assert rules(judged(stores, s7=[*group, fact("turned", 5, 20)], **kept)) == [("S1", "s7", 20)]


@pytest.mark.rows("P-311")
def test_no_life_uses_a_stable_number_again() -> None:
    """Rule S2 (P-311, T20)."""
    both = {
        "s6": [fact("holds", 5, 5, A, OLDER), fact("stable", 0, 9, life=OLDER)],
        "s7": [fact("holds", 5, 5, A), fact("stable", 8, 12, time=5)],
    }
    witnesses = [source(), source(OLDER), store(A)]
    assert ("S2", "s7", 8) in rules(judged(witnesses, **both))
    forgot = {A: [fact("forgot", 5, 5, A)]}
    assert "S2" not in {rule for rule, _, _ in rules(judged(witnesses, **both, **forgot))}, "it began anew"
    both["s7"][0] = fact("holds", 6, 6, A)
    assert "S2" not in {rule for rule, _, _ in rules(judged(witnesses, **both))}, "another source"
    both["s6"].pop()
    both["s7"][0] = fact("holds", 5, 5, A)
    assert "S2" not in {rule for rule, _, _ in rules(judged(witnesses, **both))}


def test_nothing_stable_is_cut() -> None:
    """Rule S3, by the store's own cut."""
    cut = {A: [fact("cut", 9, 20, A)]}
    assert ("S3", A, 9) in rules(judged([source()], s7=[fact("stable", 0, 9)], **cut))
    assert rules(judged([source()], s7=[fact("stable", 0, 8)], **cut)) == []


def again(kept: int | None, *before: Fact) -> dict[str, list[Fact]]:
    """Return the facts of a store that began again with numbers up to `kept`; None: it may be another store."""
    begun = [fact("kept", 0, -1, A, OLDER), fact("held", 0, 9, A, OLDER), *before]
    return {"a1": begun, "a2": [] if kept is None else [fact("kept", 0, kept, A, OLDER)]}


def emptied(clients: int, *before: Fact) -> dict[str, list[Fact]]:
    """Return the facts of a store that began again with so many clients, and never heard of the life again."""
    return {**again(None, *before), "a2": [fact("began", clients, 0, A, 0)]}


@pytest.mark.parametrize(
    ("traces", "found", "lost"),
    [
        (again(9), [("S2", "s7", 5), ("S3", B, 8)], ()),
        (again(8), [("S2", "s7", 5), ("S3", B, 8)], LOSSES),
        (again(7), [("S2", "s7", 5)], LOSSES),
        (again(4), [], LOSSES),
        (again(None), [("S2", "s7", 5), ("S3", B, 8)], ()),
        (emptied(0), [], LOSSES),
        (emptied(1), [("S2", "s7", 5), ("S3", B, 8)], ()),
        (emptied(0, fact("forgot", 4, 4, A, 0)), [], LOSSES),
        (emptied(0, fact("forgot", 5, 5, A, 0)), [("S3", B, 8)], ()),
        (again(4, fact("cut", 5, 9, A, OLDER)), [("S2", "s7", 5), ("S3", "a1", 5), ("S3", B, 8)], ()),
    ],
)
def test_numbers_that_a_store_lost_are_not_judged(
    traces: dict[str, list[Fact]], found: list[tuple[str, str, int]], lost: tuple[str, ...]
) -> None:
    """S2 and S3 speak of what is below what was lost, and what was cut was not lost."""
    traces[B] = [fact("cut", 8, 9, B, OLDER)]
    traces["s6"] = [fact("holds", 5, 5, A, OLDER), fact("stable", 0, 9, life=OLDER)]
    traces["s7"] = [fact("holds", 5, 5, A), fact("stable", 5, 12, time=5)]
    first, second = (Witness(name, Role.STORE, A, 0, True, ended, 10) for name, ended in (("a1", 1), ("a2", 2)))
    finding = judged([second, first, source(), source(OLDER)], **traces)
    assert sorted(one for one in rules(finding) if one[0] in LOSSES) == sorted(found)
    untold = [text.partition(": ")[::2] for text in finding.untold if text.startswith(LOSSES)]
    why = "a store lost them, or their source deregistered or may have"
    assert untold == [(f"{rule} cannot be decided for numbers that are stable (life 0x6)", why) for rule in lost]


def test_a_life_that_asked_to_be_deregistered_is_not_judged() -> None:
    """One store was away: it still has the life, and cuts it for the next one, which begins at 0 again."""
    registered = [fact("holds", 5, 5, A, OLDER), fact("stable", 0, 9, life=OLDER)]
    next_ = [fact("holds", 5, 5, A), fact("stable", 0, 3, time=5)]
    cut = [fact("cut", 0, 9, A, OLDER)]
    both = [store(A), store(B), source(), source(OLDER)]
    facts = {"s6": registered, "s7": next_, A: cut}
    assert sorted(rules(judged(both, **facts))) == [("S2", "s7", 0), ("S3", A, 0)]
    assert rules(judged(both, **facts, **{B: [fact("withdrew", 0, 0, life=OLDER)]})) == []


def test_lives_before_one_that_was_deregistered_are_not_judged() -> None:
    """A store that was away when a later life registered and left has an earlier one, and cuts it for the next one."""
    between, gone = 8, fact("withdrew", 0, 0, life=8)
    facts = {
        "s6": [fact("holds", 5, 5, A, OLDER), fact("holds", 6, 6, B, OLDER), fact("stable", 0, 9, life=OLDER)],
        "s8": [fact("holds", 6, 6, B, between, time=2), gone],
        "s7": [fact("holds", 5, 5, A, time=5), fact("holds", 7, 7, B, time=5), fact("stable", 0, 3, time=5)],
        A: [fact("cut", 0, 9, A, OLDER)],
        B: [fact("forgot", 6, 6, B)],
    }
    witnesses = [store(A), store(B), source(), source(OLDER), source(between)]
    assert rules(judged(witnesses, **facts)) == []
    found = [("S2", "s7", 0), ("S3", A, 0)]
    facts["s8"] = [fact("holds", 6, 6, B, between, time=2)]
    assert sorted(rules(judged(witnesses, **facts))) == found, "it did not leave"
    facts["s8"] = [fact("holds", 9, 9, B, between, time=2), gone]
    assert sorted(rules(judged(witnesses, **facts))) == found, "another source left"
    facts["s8"] = [fact("holds", 6, 6, B, between, time=2), gone]
    facts["s6"][1] = fact("holds", 6, 6, B, OLDER, time=3)
    facts["s6"][0] = fact("holds", 5, 5, A, OLDER, time=3)
    assert sorted(rules(judged(witnesses, **facts))) == found, "a later life had those numbers"


@pytest.mark.rows("P-302", "P-346")
def test_an_acknowledgement_was_given_by_whom_it_names() -> None:
    """Rules P6 and A3 (P-302, P-346)."""
    acked = [fact("acked", 0, 9, A)]
    assert rules(judged([store(A), source()], s7=acked, a=[fact("said", 0, 9, A)])) == []
    assert rules(judged([store(A), source()], s7=acked, a=[fact("said", 0, 8, A)])) == [("P6", "s7", 9)]
    [suspect] = judged([store(A), source()], s7=acked, a=[fact("said", 2, 4, A), fact("said", 6, 8, A)]).suspects
    assert (suspect.number, suspect.missing) == (0, ((0, 1), (5, 5), (9, 9)))
    finding = judged([store(A, complete=False), source()], s7=acked)
    assert rules(finding) == []
    assert "life 0x7" in finding.untold[0]
    heard = {A: [fact("heard", -1, 9, f"{A}/5")]}
    gave = {"r": [fact("holds", 5, 5, A), fact("confirmed", -1, 8, f"{A}/5")]}
    assert rules(judged([store(A), reader()], **heard, **gave)) == [("A3", A, 9)]
    assert rules(judged([store(A), reader(), reader("q", complete=False)], **heard, **gave)) == [("A3", A, 9)]
    gave["q"] = [fact("holds", 5, 5, A)]
    assert rules(judged([store(A), reader(), reader("q", complete=False)], **heard, **gave)) == []


def reigns(ended: int, current: int) -> list[Fact]:
    """Return what a store states when a trace begins: the life before ended at a number, and what it has of both."""
    older = fact("reign", 3, ended, A, life=OLDER), fact("held", 0, ended - 1, A, life=OLDER)
    return [*older, fact("reign", 3, -1, A), fact("held", ended, current, A)]


def test_a_lost_trace_of_a_store_has_what_it_acknowledged_and_cut() -> None:
    """A store acknowledged 15, cut it for the next life, and lost the trace of both."""
    acked = {"s6": [fact("acked", 0, 15, A, life=OLDER)]}
    both = [source(OLDER), source()]
    finding = judged([store(A), *both], **acked, a=[], **{A: reigns(15, 20)})
    assert rules(finding) == []
    assert [text.partition(" ")[0] for text in finding.untold] == ["P6"]
    below = {"s6": [fact("acked", 0, 15, A, life=OLDER)], A: reigns(14, 20)[:1] + reigns(14, 20)[2:]}
    assert rules(judged([store(A), *both], **below)) == [("P6", "s6", 0)], "it let go of nothing"
    current = {"s7": [fact("acked", 15, 21, A)]}
    assert rules(judged([store(A), *both], **current, **{A: reigns(15, 20)})) == [("P6", "s7", 21)]
    first, second = (Witness(name, Role.STORE, A, 0, True, ended, 10) for name, ended in (("a1", 1), ("a2", 2)))
    began = [fact("reign", 3, -1, A, life=OLDER), fact("held", 0, 14, A, life=OLDER)]
    seen = {"a1": [*began, fact("said", 15, 15, A)], "a2": reigns(15, 20)}
    assert rules(judged([first, second, *both], **acked, **seen)) == [("P6", "s6", 15)], "the first trace has the end"
    seen["a1"] = began
    assert rules(judged([first, second, *both], **acked, **seen)) == [], "a trace between them is lost"


def test_delivered_numbers_were_sent() -> None:
    """Rule D1, by the source's trace."""
    delivered = {"r": [fact("delivered", 3, 9)]}
    assert rules(judged([source(), reader()], s7=[fact("sent", 0, 9)], **delivered)) == []
    assert rules(judged([source(), reader()], s7=[fact("sent", 0, 5)], **delivered)) == [("D1", "r", 6)]
    assert rules(judged([source(complete=False), reader()], s7=[fact("sent", 0, 5)], **delivered)) == []


@pytest.mark.rows("P-540")
def test_one_proxy_lasts() -> None:
    """Rule E4 (P-540, T23)."""
    long, short = store(A, ended=100), store(B, ended=100)
    first, second = fact("proxy", 5, 5, "orders"), fact("proxy", 8, 8, "orders", record=2)
    two = {A: [first], B: [second]}
    assert rules(judged([long, short], **two)) == [("E4", B, 8)]
    assert rules(judged([long], **two)) == [], "nobody knows what became of the second"
    late = {A: [first], B: [fact("proxy", 8, 8, "orders", time=95)]}
    assert rules(judged([long, short], **late)) == []
    retired = {A: [first], B: [second, fact("retired", 8, 8, record=3)]}
    assert rules(judged([long, short], **retired)) == []
    again = {A: [first], B: [fact("retired", 8, 8, record=1), second]}
    assert rules(judged([long, short], **again)) == [("E4", B, 8)]


def test_counting_holders_agrees_with_counting_each_number() -> None:
    random = Random(7)
    for _ in range(200):
        sets = []
        for _ in range(random.randint(0, 5)):
            one = RangeSet()
            for _ in range(random.randint(0, 4)):
                start = random.randint(0, 30)
                one.add(start, start + random.randint(1, 9))
            sets.append(one)
        count = random.randint(1, 4)
        expected = RangeSet()
        for number in range(45):
            if sum(number in one for one in sets) >= count:
                expected.add(number, number + 1)
        assert at_least(sets, count) == expected


def test_a_store_that_was_started_before_its_only_trace_may_have_said_anything() -> None:
    """A power cut took the first trace, and its sources had left before the second one (router seed 10051795)."""
    heard = {"r": [fact("asked", 5, 5, A), fact("listened", 8, 8, "#5")]}
    assert rules(judged([store(A), reader()], **heard, **{A: [fact("began", 0, 0, A)]})) == [("H1", "r", 8)]
    assert rules(judged([store(A), reader()], **heard, **{A: [fact("began", 0, 1, A)]})) == [("H1", "r", 8)]
    assert rules(judged([store(A), reader()], **heard, **{A: [fact("began", 0, 2, A)]})) == []
    assert rules(judged([store(A), reader()], **heard, **{A: [fact("began", 1, 1, A)]})) == []


def registering(digest: int, *endpoints: int) -> list[Fact]:
    """Return the facts of a store to which endpoints of the context 5 at s:1 came, and a message of a digest."""
    heard = [fact("context", one, one, "s:1", life=5) for one in endpoints]
    return [fact("began", 0, 0, A), *heard, fact("listened", digest, digest, "s:1")]


def speaking(digest: int, endpoint: int) -> list[Fact]:
    """Return the facts of an endpoint of the context 5 at s:1 that sent a message of a digest."""
    return [fact("context", endpoint, endpoint, "s:1", life=5), fact("spoke", digest, digest, "s:1")]


def test_a_client_is_known_when_all_endpoints_of_its_contexts_have_traces() -> None:
    """Two lives of one context were made one after the other; the trace of the second one is lost."""
    stores, first = store(A), source()
    assert rules(judged([stores, first], **{A: registering(9, 1), "s7": speaking(9, 1)})) == []
    assert rules(judged([stores, first], **{A: registering(8, 1), "s7": speaking(9, 1)})) == [("H1", A, 8)]
    assert rules(judged([stores, first], **{A: registering(8, 1, 2), "s7": speaking(9, 1)})) == []
    second = {"s6": speaking(8, 2)}
    both = [stores, first, source(OLDER)]
    assert rules(judged(both, **{A: registering(8, 1, 2), "s7": speaking(9, 1)}, **second)) == []
    assert rules(judged(both, **{A: registering(3, 1, 2), "s7": speaking(9, 1)}, **second)) == [("H1", A, 3)]
    assert [one.senders for one in judged(both, **{A: registering(3, 1), "s7": speaking(9, 1)}).suspects] == [("s:1",)]


def test_a_receiver_confirms_nothing_of_a_process_that_left_no_trace() -> None:
    """A power cut took a trace. Another process of the receiver has its RegID, and knows only what it did itself."""
    gave = {"r": [fact("context", 1, 1, "r:1", life=5), fact("holds", 5, 5, A)]}
    heard = [fact("context", 1, 1, "r:1", life=5), fact("heard", -1, 9, f"{A}/5")]
    before = fact("context", 1, 1, "r:1", life=4)
    assert rules(judged([store(A), reader()], **gave, **{A: heard})) == [("A3", A, 0)]
    finding = judged([store(A), reader()], **gave, **{A: [before, *heard]})
    assert rules(finding) == []
    assert [text.partition(" ")[0] for text in finding.untold] == ["A3"]
    other = fact("context", 2, 2, "r:2", life=4)  # Another receiver.
    assert rules(judged([store(A), reader()], **gave, **{A: [other, *heard]})) == [("A3", A, 0)]
    both = gave | {"q": [before, fact("holds", 5, 5, A), fact("confirmed", -1, 8, f"{A}/5")]}
    assert rules(judged([store(A), reader(), reader("q")], **both, **{A: [before, *heard]})) == [("A3", A, 9)]
    cut = judged([store(A), reader(), reader("q", complete=False)], **both, **{A: [before, *heard]})
    assert rules(cut) == []


@pytest.mark.no_cover
def test_a_store_that_returns_at_another_port_may_answer_there(tmp_path: Path) -> None:
    """A source deregisters at a store that has moved since the source registered with it."""
    assert run(with_earlier(draw(1288), 1), tmp_path).violations == ()
    assert verify_paths(find([tmp_path])).violations == []
