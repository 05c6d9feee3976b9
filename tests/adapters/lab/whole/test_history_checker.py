"""Each rule of the checker finds its planted violation, and a history without violations is clean."""

from collections.abc import Callable
from typing import Any

import pytest

from stablecast.lab.whole import runner
from stablecast.lab.whole.history_checker import TRACEBACK, judge
from stablecast.lab.whole.schedule import RECEIVERS as RECEIVERS_OF_WORLDS
from stablecast.lab.whole.schedule import Setup, WorldSchedule

Lines = list[dict[str, Any]]
RECEIVERS = ["receiver", "late"]


LATE = {"receiver": "late", "topic": "orders", "store": 0}


def line(at: int, what: str, run: str, **fields: Any) -> dict[str, Any]:
    return {"t": at, "is": what, "run": run, **fields}


def sent(at: int, run: str, *items: tuple[int, str]) -> dict[str, Any]:
    stream = f"{run}/orders/0"
    return line(at, "sent", run, stream=stream, owner="source", topic="orders", items=[list(item) for item in items])


def stable(at: int, run: str, first: int, last: int) -> dict[str, Any]:
    stream = f"{run}/orders/0"
    return line(at, "stable", run, stream=stream, owner="source", topic="orders", first=first, last=last)


def got(at: int, run: str, number: int, name: str, **more: Any) -> dict[str, Any]:
    receiver = run.partition(".")[0]
    fields = {"receiver": receiver, "topic": "orders", "first": number, "number": number, "life": 1, "whole": True}
    return line(at, "delivered", run, id=name, **{**fields, **more})


def consumed(at: int, run: str, *names: str, **more: Any) -> dict[str, Any]:
    return line(at, "consumed", run, **{"receiver": run.partition(".")[0], "ids": list(names), **more})


def name(count: int, run: str = "source.1") -> str:
    return f"{run}/orders/0:{count}"


def clean() -> Lines:
    """Return a history of three messages of two lives, and of two receivers, one of which confirms."""
    return [
        line(0, "reg-id", "receiver.1", receiver="receiver", topic="orders", store=0, reg_id=5),
        sent(1, "source.1", (0, name(0)), (1, name(1))),
        got(2, "receiver.1", 0, name(0)),
        got(3, "receiver.1", 1, name(1)),
        stable(4, "source.1", 0, 1),
        line(5, "confirmed", "source.1", stream="source.1/orders/0", owner="source", topic="orders", first=0, last=1,
             reg_id=5),
        sent(6, "source.2", (2, name(0, "source.2"))),
        stable(7, "source.2", 2, 2),
        got(8, "receiver.1", 2, name(0, "source.2"), life=2),
        *(got(9 + number, "late.1", number, one) for number, one in enumerate((name(0), name(1)))),
        got(12, "late.1", 2, name(0, "source.2"), life=2),
        consumed(3, "receiver.1", name(0)),
        consumed(5, "receiver.1", name(1)),
        consumed(9, "receiver.1", name(0, "source.2")),
    ]  # fmt: skip


def rules(lines: Lines, errors: dict[str, str] | None = None) -> set[str]:
    found = judge(lines, errors or {}, RECEIVERS).violations
    print("\n".join(found))
    return {text.partition(":")[0] for text in found}


def test_a_clean_history_is_clean() -> None:
    verdict = judge(clean(), {"source.1": "store 10.0.0.1:14567 is unresponsive\n"}, RECEIVERS)
    assert verdict.violations == []
    assert (verdict.sent, verdict.stable, verdict.delivered, verdict.confirmed) == (3, 3, 6, 1)


def without(index: int) -> Callable[[Lines], None]:
    def plant(lines: Lines) -> None:
        del lines[index]

    return plant


def change(index: int, **fields: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[index].update(fields)


def swap(lines: Lines) -> None:
    """Deliver number 1 before number 0."""
    lines[2]["t"], lines[3]["t"] = lines[3]["t"], lines[2]["t"]


def older_life_late(lines: Lines) -> None:
    """Deliver message 1 of the first life after message 2 of the second."""
    lines[3]["t"], lines[13]["t"] = 9, 10


def number_again(lines: Lines) -> None:
    """Let the second life begin with number 1 again."""
    lines[6]["items"] = [[1, name(0, "source.2")]]
    lines[7].update(first=1, last=1)
    for index in (8, 11):
        lines[index].update(first=1, number=1)


def twice(lines: Lines) -> None:
    lines.append(got(20, "receiver.1", 2, name(0, "source.2"), life=3))


def confirmed_early(lines: Lines) -> None:
    """Confirm message 1 when it is in hand: it was delivered, and the application has not let go of it."""
    lines[5]["t"] = 4


def confirmed_by_another(lines: Lines) -> None:
    """Let another receiver consume what this one has in hand only."""
    lines[13].update(receiver="late", run="late.1")


def unnamed(lines: Lines) -> None:
    """Report number 3 stable, although the source died before it wrote the name of that message."""
    lines.append(stable(21, "source.2", 3, 3))


def fault(*between: int) -> Callable[[Lines], None]:
    def plant(lines: Lines) -> None:
        lines.append(line(100, "fault", "history", who="store1", survivable=True))
        lines.append(line(200, "heal", "history", who="store1"))
        lines.extend(stable(at, "source.1", 0, 1) for at in between)

    return plant


def again(before_ms: int, *more: dict[str, Any], number: int = 0, **fields: Any) -> Callable[[Lines], None]:
    """Let the receiver be killed so long after it consumed message 0, and get a message again in its next run."""

    def plant(lines: Lines) -> None:
        ms, first = 1_000_000, 1_000
        lines[:] = [{**one, "t": one["t"] + first * ms} for one in lines]
        killed = (first + before_ms) * ms + 3
        lines.append(line(0, "prompt", "history", late=fields.pop("late", 0), spare=fields.pop("spare", 0)))
        lines.append(line(ms, "begin", "receiver.1", role="receiver"))
        lines.append(line(ms, "begin", "source.1", role="source"))
        lines.append(line(killed, "fault", "history", who="receiver", do="kill", text="kill"))
        lines.append(line(killed + ms, "heal", "history", who="receiver", text="kill"))
        lines.append(line(killed + ms, "begin", "receiver.2", role="receiver"))
        lines.append(got(killed + 9 * ms, "receiver.2", number, name(number), **fields))
        lines.extend({**one, "t": one["t"] * ms} for one in more)

    return plant


def behind(*stores: str) -> dict[str, Any]:
    """Say which stores are behind the router, seen from the receiver."""
    return line(0, "domains", "history", routers=["router"], linked=False, beyond={"receiver": [*stores]})


def held_before(lines: Lines) -> None:
    """Let message 1 come again after a crash, while the application had not let go of message 0."""
    again(500, number=1)(lines)
    lines[:] = [one for one in lines if one["is"] != "consumed" or name(0) not in one["ids"]]


def trouble(at_ms: int, who: str, do: str, healed_ms: int) -> tuple[dict[str, Any], dict[str, Any]]:
    fields = {"who": who, "text": f"{do} {who}"}
    return line(at_ms, "fault", "history", do=do, **fields), line(healed_ms, "heal", "history", **fields)


def group(*more: dict[str, Any]) -> Callable[[Lines], None]:
    """Let two members share the messages; the second closes in order."""

    def plant(lines: Lines) -> None:
        lines[:] = [one for one in lines if one["is"] not in {"delivered", "consumed", "confirmed"}]
        lines += [line(0, "begin", run, role="receiver") for run in ("ada.1", "leo.1")]
        lines.append(line(0, "begin", "source.1", role="source"))
        names = (name(0), name(1), name(0, "source.2"))
        for receiver, one, two in (("receiver", "ada.1", "leo.1"), ("late", "ada.1b", "leo.1b")):
            for at, run, number in ((10, one, 0), (11, two, 2), (13, two, 1), (20, one, 1)):
                shared = {"receiver": receiver, "member": run.partition(".")[0]}
                lines.append(got(at, run, number, names[number], **shared))
                if at != 13:  # The member that leaves has this message in hand, and the other one gets it.
                    lines.append(consumed(at + 1, run, names[number], receiver=receiver))
        lines.append(line(15, "fault", "history", who="leo", do="close", text="close"))
        lines.extend(more)

    return plant


def pieces(*, large: bool) -> Callable[[Lines], None]:
    """Report numbers 3 and 4 stable, which no line names."""

    def plant(lines: Lines) -> None:
        lines.append({**stable(21, "source.2", 3, 4), "large": large})

    return plant


def missed_large(lines: Lines) -> None:
    """Send a large message with number 4, after its piece 3, that no receiver gets."""
    lines.append(sent(20, "source.2", (4, name(1, "source.2"))))
    lines.append({**stable(21, "source.2", 3, 4), "large": True})


def paced(*stores: int, later: bool = False, early: bool = False) -> Callable[[Lines], None]:
    """Let the late receiver miss the last message, and register at some stores two seconds before or after that.

    An `early` message was sent before, and its acknowledgements came late.
    """

    def plant(lines: Lines) -> None:
        second = 1_000_000_000
        lines.append(line(0, "paced", "history"))
        del lines[11]
        lines[6]["t"], lines[7]["t"] = lines[6]["t"] if early else 5 * second - 1, 5 * second
        at = 7 * second if later else 3 * second
        lines.extend(line(at, "reg-id", "late.1", **{**LATE, "store": store}, reg_id=9) for store in stores)

    return plant


def twin_reuses(lines: Lines) -> None:
    """Let a second process of the source use a stable number for a message of its own."""
    lines.append(sent(20, "source-twin.5", (1, name(0, "source-twin.5"))))
    lines.append(stable(21, "source-twin.5", 1, 1))
    for receiver in ("receiver", "late"):
        lines.append(got(22, f"{receiver}.9", 1, name(0, "source-twin.5"), life=3))


def twin_receives(lines: Lines) -> None:
    """Let a second process of a receiver get the last message in place of the first."""
    lines[11].update(run="late-twin.5")


def twin_receives_again(lines: Lines) -> None:
    """Let a second process of a receiver get one message two times."""
    lines[11].update(run="late-twin.5")
    lines.append({**lines[11], "t": 13})


def mark(what: str, **fields: Any) -> Callable[[Lines], None]:
    return lambda lines: lines.append(line(30, what, "history", **{"text": "it did", **fields}))


def within(messages: int, missing: int) -> Callable[[Lines], None]:
    """Let stores keep this many messages, and the late receiver miss one."""

    def plant(lines: Lines) -> None:
        lines.insert(0, line(0, "limited", "history", messages=messages))
        lines[:] = [one for one in lines if (one["run"], one.get("number")) != ("late.1", missing)]

    return plant


def told(first: int, last: int) -> Callable[[Lines], None]:
    """Let stores keep one message, and the late receiver miss the second of three and report a loss."""

    def plant(lines: Lines) -> None:
        within(1, missing=1)(lines)
        lines.append(line(8, "event", "late.1", receiver="late", topic="orders", first=first, last=last))

    return plant


def returns(*, left: bool = False, renewed: bool = False) -> Callable[[Lines], None]:
    """Let the late receiver start again after its first message, and miss the second of three, of which one is kept."""

    def plant(lines: Lines) -> None:
        within(1, missing=1)(lines)
        lines[0]["returns"] = not renewed
        lines[:] = [{**one, "run": "late.2"} if one["run"] == "late.1" and one["t"] == 12 else one for one in lines]
        lines.append(line(11, "begin", "late.2", role="receiver"))
        lines.append(line(10, "fault", "history", who="late", do="leave" if left else "kill", text="it"))

    return plant


def follows(*reg_ids: int, life: int, renewed: bool = True) -> Callable[[Lines], None]:
    """Let the late receiver miss the second of three messages in one run, in which a store gives it these RegIDs.

    Stores keep one message, and the third message is one of this life.
    """

    def plant(lines: Lines) -> None:
        within(1, missing=1)(lines)
        lines[0]["returns"] = not renewed
        lines[:] = [{**one, "life": life} if one["run"] == "late.1" and one["t"] == 12 else one for one in lines]
        lines.extend(line(2 + 9 * at, "reg-id", "late.1", **LATE, reg_id=one) for at, one in enumerate(reg_ids))

    return plant


def another_owner_is_limited(lines: Lines) -> None:
    """Let stores keep little of another source."""
    within(0, missing=0)(lines)
    lines.insert(0, line(0, "limited", "history", messages=2, owner="second"))


def after_a_departure(*, missing: int) -> Callable[[Lines], None]:
    """Let the source deregister after its first life; the late receiver misses a message."""

    def plant(lines: Lines) -> None:
        within(0, missing)(lines)
        for one in lines:
            if one["run"] == "source.2":
                one["owner"] = "source after 1"
        lines.append(line(5, "departed", "history", owner="source after 1"))

    return plant


def other_program_departs(lines: Lines) -> None:
    """Let another program deregister, and the late receiver miss a message of the one that stays."""
    within(0, missing=0)(lines)
    lines.append(line(5, "departed", "history", owner="source1 after 1"))


def unordered(plant: Callable[[Lines], None]) -> Callable[[Lines], None]:
    """Plant what a receiver in arrival order gets."""

    def planted(lines: Lines) -> None:
        plant(lines)
        for one in lines:
            if one["is"] == "delivered":
                one["unordered"] = True

    return planted


def read(plant: Callable[[Lines], None]) -> Callable[[Lines], None]:
    """Let a reader return the messages of the late receiver."""

    def planted(lines: Lines) -> None:
        plant(lines)
        for one in lines:
            if one["run"] == "late.1":
                one["read"] = True

    return planted


def read_from_the_second_on(lines: Lines) -> None:
    """Let the reader leave message 0 out, and another one of the same receiver return it."""
    lines[9]["run"] = "late.2"


def read_unstable(lines: Lines) -> None:
    """Let the reader return a message of the first life whose number the second life used again."""
    lines[11].update(id=name(2), life=1)
    lines.append(got(13, "late.2", 2, name(0, "source.2"), life=2))


def hot(plant: Callable[[Lines], None]) -> Callable[[Lines], None]:
    """Let two programs send one message with a hot number, under different numbers of their own."""

    def planted(lines: Lines) -> None:
        for at, run, number in ((20, "source.2", 3), (21, "other.1", 0)):
            lines += [sent(at, run, (number, "hot/orders:9")), stable(at + 2, run, number, number)]
            lines[-2]["owner"] = lines[-1]["owner"] = run.partition(".")[0]
        lines += [got(25, "receiver.1", 0, "hot/orders:9", life=7), got(26, "late.1", 3, "hot/orders:9", life=2)]
        plant(lines)

    return planted


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (without(11), {"lost"}),
        (other_program_departs, {"lost"}),
        (unordered(swap), set()),
        (unordered(older_life_late), {"confirmed"}),
        (unordered(twice), {"twice"}),
        (unordered(change(8, number=3)), {"changed"}),
        (unordered(without(11)), {"lost"}),
        (read(lambda _: None), set()),
        (read(read_from_the_second_on), {"skipped"}),
        (read_from_the_second_on, set()),
        (read(read_unstable), {"replaced"}),
        (hot(lambda _: None), set()),
        (hot(without(-1)), {"lost"}),
        (hot(lambda lines: lines.append(got(30, "late.1", 0, "hot/orders:9", life=7))), {"twice"}),
        (unnamed, {"lost"}),
        (number_again, {"reused", "order"}),
        (change(3, whole=False), {"changed"}),
        (change(8, number=3), {"changed"}),
        (swap, {"order"}),
        (older_life_late, {"order", "confirmed"}),
        (twice, {"twice", "order"}),
        (confirmed_early, {"confirmed"}),
        (confirmed_by_another, {"confirmed"}),
        (change(5, last=2), set()),  # number 2 was sent by another life: this stream does not name it
        (change(5, reg_id=6), set()),  # no receiver is known by that RegID, and some receiver got the messages
        (again(109), set()),  # its acknowledgement may not have left yet
        (again(111), {"repeated"}),
        (again(111, late=2_000_000), set()),  # other work on the machine may delay it
        (again(113, late=2_000_000), {"repeated"}),
        (again(111, consumed(1, "receiver.1", kept=0.01)), set()),  # one call kept the loop
        (again(121, consumed(1, "receiver.1", kept=0.01)), {"repeated"}),
        (again(500, number=1), {"repeated"}),
        (held_before, {"confirmed"}),  # an acknowledgement waits for all messages before
        (again(500, unordered=True), set()),  # it may wait for the recovery of others
        (again(500, unordered=True, member="ada"), {"repeated"}),
        (again(500, *trouble(1_100, "store1", "kill", 1_200)), set()),  # a store may have lost it
        (again(3_000, *trouble(500, "store1", "kill", 600)), set()),
        (again(3_000, *trouble(3_500, "receiver", "mute", 3_600)), set()),
        (again(500, *trouble(1_100, "late", "mute", 1_200), line(0, "begin", "late.1", role="receiver")), {"repeated"}),
        (again(500, *trouble(1_100, "source", "kill", 1_200)), {"repeated"}),
        (again(500, *trouble(1, "store1", "wipe", 2)), set()),
        (again(500, *trouble(1, "store1", "wipe", 2), spare=1), {"repeated"}),  # the other two have it
        (again(500, *trouble(1, "store1", "blackout", 2_000), spare=1), set()),
        (again(500, *trouble(1, "store1", "wipe", 2), *trouble(1_100, "store2", "kill", 1_200), spare=1), set()),
        (again(500, *trouble(1_100, "router", "kill", 1_200), behind("store1", "store2"), spare=1), set()),
        (again(500, *trouble(1_100, "router", "kill", 1_200), behind("store1"), spare=1), {"repeated"}),  # two are near
        (group(), set()),
        (group(consumed(30, "ada.1", name(0), receiver="receiver")), {"divided"}),
        (group(consumed(16, "leo.1", name(1), receiver="receiver")), {"divided"}),
        (group(consumed(30, "ada.1", name(0), receiver="receiver"), *trouble(29, "leo", "kill", 31)), set()),
        (group(consumed(30, "ada.1", name(0), receiver="receiver"), *trouble(29, "source", "kill", 31)), {"divided"}),
        (group(consumed(30, "ada.1", name(0), receiver="receiver"), *trouble(31, "leo", "kill", 32)), {"divided"}),
        (fault(120), {"blocked"}),
        (fault(120, 180), set()),
        (pieces(large=False), {"lost"}),
        (pieces(large=True), set()),  # pieces of a message that was not sent completely have no name
        (missed_large, {"lost"}),
        (within(2, missing=0), set()),  # the limit released the oldest message
        (within(2, missing=1), {"lost"}),
        (
            within(1, missing=1),
            {"lost"},
        ),  # it let go of that, too, but not before the receiver began, who reports nothing
        (told(1, 1), set()),
        (told(0, 5), set()),
        (told(2, 2), {"lost"}),
        (another_owner_is_limited, {"lost"}),
        (returns(), {"lost"}),
        (returns(left=True), set()),  # it deregistered, so it is new
        (returns(renewed=True), set()),
        (follows(8, life=1), {"lost"}),
        (follows(8, 9, life=1), set()),  # it has no session id and no RegIDs, so it is new with a new RegID,
        (follows(8, life=2), set()),  # or in the next life, whose messages the application may get later
        (follows(8, 9, life=2, renewed=False), {"lost"}),
        (within(0, missing=0), {"lost"}),
        (after_a_departure(missing=0), set()),  # the source took its messages with it
        (after_a_departure(missing=2), {"lost"}),
        (paced(0, 1), {"lost"}),
        (paced(0), set()),  # too few stores knew the receiver when the message arrived
        (paced(0, 0), set()),  # it registered at one of them again
        (paced(), set()),
        (paced(0, 1, early=True), set()),  # stores may have had it before
        (paced(0, 1, later=True), set()),  # they learned of it after the message was stable
        (twin_reuses, {"reused"}),
        (twin_receives, set()),
        (twin_receives_again, {"twice", "order"}),
        (mark("ended"), {"ended"}),
        (mark("hang"), {"hang"}),
        (mark("forked", answers={"send 0": "MisuseError", "try_send 0": "Closed"}), set()),
        (mark("forked", answers={"send 0": "MisuseError", "try_send 0": "an answer"}), {"forked"}),
        (mark("forked", answers={"send 0": "TimeoutError"}), {"forked"}),
    ],
)
def test_a_planted_violation_is_found(plant: Callable[[Lines], None], expected: set[str]) -> None:
    lines = clean()
    plant(lines)
    assert rules(lines) == expected


def test_a_message_that_never_became_stable_may_be_lost_and_its_number_used_again() -> None:
    lines = clean()
    lines.insert(0, sent(0, "source.1", (2, name(2))))
    lines.append(got(4, "receiver.1", 2, name(2)))
    assert rules(lines) == set()


def test_a_confirmation_by_a_receiver_that_never_got_it_is_found() -> None:
    """The delivery to another receiver does not count."""
    lines = clean()
    lines.append(line(0, "reg-id", "other.1", receiver="other", topic="orders", store=0, reg_id=7))
    lines[5]["reg_id"] = 7
    assert rules(lines) == {"confirmed"}


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  File ...\nValueError: 1",
        "Task exception was never retrieved",
        "Exception ignored in: <function f>",
        "sys:1: RuntimeWarning: coroutine 'f' was never awaited",
    ],
)
def test_a_traceback_is_found(text: str) -> None:
    assert TRACEBACK.search(text)
    assert rules(clean(), {"store1.2": text}) == {"traceback"}


def test_a_message_that_a_member_died_with_is_processed_by_another() -> None:
    """It was delivered. The rule `lost` asks of a group that one of its members processed it."""
    lines = clean()
    group()(lines)
    lines[:] = [one for one in lines if one["is"] != "consumed" or name(1) not in one["ids"]]
    assert rules(lines) == {"lost"}


def test_an_application_may_write_a_message_down_when_it_has_processed_it() -> None:
    """Then no other line tells when it let go of one, and nothing is judged by the time of that."""
    lines = [one for one in clean() if one["is"] != "consumed"]
    lines[5]["t"] = 3
    assert rules(lines) == set()
    again(500)(lines)
    assert rules(lines) == set()
    lines[5]["t"] = 0
    assert rules(lines) == {"confirmed"}


@pytest.mark.parametrize("mode", ["plain", "batches", "callback", "slow", "explicit"])
def test_the_applications_of_a_world_tell_when_they_let_go_of_a_message(mode: str) -> None:
    """Without these lines a confirmation of a message in hand, or a late acknowledgement, would show nowhere."""
    lines = runner.run(WorldSchedule(4, Setup(modes=(mode, mode)), horizon_ms=1_000)).lines
    names = {receiver: [line for line in lines if line.get("receiver") == receiver] for receiver in RECEIVERS_OF_WORLDS}
    for found in names.values():
        delivered = {line["id"] for line in found if line["is"] == "delivered"}
        assert delivered
        assert {one for line in found if line["is"] == "consumed" for one in line["ids"]} == delivered  # type: ignore[attr-defined]
