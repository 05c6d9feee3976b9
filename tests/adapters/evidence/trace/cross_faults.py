"""Faults that one trace alone may hide: each is planted in the traces of `play`, as lines of its frames, by file."""

from collections.abc import Callable
from pathlib import Path

from stablecast.evidence.trace.converter import Json
from stablecast.evidence.trace.file_names import part_of
from tests.adapters.evidence.trace.traced import FIRST_LIFE, SECOND_LIFE, Frames, put_together, records, take_apart

World = dict[str, Frames]
"""The traces of a world by role and number, as `source0`, in the order in which they were begun."""

Found = tuple[str, int, str]
"""The trace, the record and the rule that it breaks."""


def take_world_apart(directory: Path) -> World:
    world: World = {}
    for path in sorted(directory.glob("*.sct"), key=lambda path: int(path.stem.rpartition("-")[2])):
        role = path.name.partition("-")[0]
        world[f"{role}{sum(name.startswith(role) for name in world)}"] = take_apart(Path(part_of(path)[0]))
    return world


def put_world_together(directory: Path, world: World) -> None:
    """Write the traces; each name ends in a number, as a recorder's does."""
    directory.mkdir(exist_ok=True)
    for number, (name, frames) in enumerate(world.items()):
        put_together(directory / f"{name}-1-{number}.sct", frames)


def said(frames: Frames, kind: str) -> tuple[Json, Json]:
    """Return the first record with such a message or event, and that."""
    for record in records(frames):
        for one in (record["in"], *record["out"]):
            found = one if one["_"] == kind else one.get("message") or one.get("event") or {}
            if found.get("_") == kind:
                return record, found
    raise AssertionError(kind)


def answered(frames: Frames) -> tuple[Json, Json]:
    """Return the first record with an answer of a store that was never restarted, and the answer.

    The first store is restarted. An earlier life of a store may have given an answer, too.
    """
    for record in records(frames):
        message = record["in"].get("message") or {}
        if message.get("_") == "Registered" and message["store_index"]:
            return record, message
    raise AssertionError("Registered")


def count_on_an_ack_that_was_never_given(world: World) -> Found:
    record, ack = said(world["source0"], "StableAck")
    ack["last"] += 5000
    return "source0", record["n"], "P6"


def call_stable_what_no_store_has(world: World) -> Found:
    record = next(r for r in records(world["source0"]) if any(_is_stable(effect) for effect in r["out"]))
    event = next(effect["event"] for effect in record["out"] if _is_stable(effect))
    event["last"] += 5000
    return "source0", record["n"], "S1"


def lose_a_message_at_two_stores(world: World) -> Found:
    """Remove a message at two of three stores, so that no quorum has it."""
    for name in ("store1", "store2"):
        _, effect = said(world[name], "PersistMessages")
        effect["count"] -= 1
    record = next(r for r in records(world["source0"]) if any(_is_stable(effect) for effect in r["out"]))
    return "source0", record["n"], "S1"


def use_a_stable_number_again(world: World) -> Found:
    record = next(r for r in records(world["source1"]) if any(_is_stable(effect) for effect in r["out"]))
    event = next(effect["event"] for effect in record["out"] if _is_stable(effect))
    event["first"] -= 3
    return "source1", record["n"], "S2"


def cut_what_is_stable(world: World) -> Found:
    record = list(records(world["store1"]))[-1]
    _, kept = said(world["store1"], "PersistMessages")
    record["out"].append({"_": "Cut", "ticket": 9999, "source_reg_id": kept["source_reg_id"], "number": 0})
    return "store1", record["n"], "S3"


def deliver_what_was_never_sent(world: World) -> Found:
    record, effect = said(world["receiver1"], "Deliver")
    effect["count"] += 5000
    return "receiver1", record["n"], "D1"


def deliver_what_an_older_life_sent(world: World) -> Found:
    record, _ = said(world["receiver2"], "Deliver")
    record["in"]["incarnation"] ^= FIRST_LIFE ^ SECOND_LIFE
    return "receiver2", record["n"], "D1"


def believe_a_receiver_that_said_nothing(world: World) -> Found:
    record, ack = said(world["store1"], "ConsumptionAck")
    ack["number"] += 5000
    return "store1", record["n"], "A3"


def get_a_reg_id_that_no_store_gave(world: World) -> Found:
    record, answer = answered(world["source0"])
    answer["reg_id"] ^= 1
    return "source0", record["n"], "H1"


def begin_above_what_the_store_answered(world: World) -> Found:
    """The answer makes the receiver pass over ten messages."""
    record, answer = answered(world["receiver1"])
    answer["low"] += 10
    return "receiver1", record["n"], "H1"


def grant_what_nobody_asked_for(world: World) -> Found:
    record, request = said(world["store1"], "Register")
    request["activity_timeout_ms"] += 1000
    return "store1", record["n"], "H1"


def answer_a_request_that_nobody_made(world: World) -> Found:
    record, request = said(world["store1"], "Register")
    names = ("incarnation", "source_reg_id", "reply_to")
    asked = {
        "_": "RetransmitRequest",
        "by": 1,
        "request": 1,
        "first": 0,
        "last": 9,
        **{name: request[name] for name in names},
    }
    record["in"]["message"] = asked
    return "store1", record["n"], "H1"


def forget_a_client_that_did_not_leave(world: World) -> Found:
    record, request = said(world["store1"], "Register")
    names = ("role", "store_index", "generation", "reg_id", "incarnation", "source_reg_id", "reply_to")
    record["in"]["message"] = {"_": "Deregister", **{name: request[name] for name in names}}
    return "store1", record["n"], "H1"


def believe_an_announcement_of_what_was_not_sent(world: World) -> Found:
    record, info = said(world["receiver1"], "SourceInfo")
    info["high"] = 5000
    return "receiver1", record["n"], "H1"


def keep_what_was_never_sent(world: World) -> Found:
    record, effect = said(world["store1"], "PersistMessages")
    effect["count"] += 5000
    return "store1", record["n"], "H1"


def _is_stable(effect: Json) -> bool:
    event = effect.get("event") or {}
    return event.get("_") == "Stable" and bool(event["flags"] & 4)


CROSS_FAULTS: list[Callable[[World], Found]] = [
    count_on_an_ack_that_was_never_given,
    call_stable_what_no_store_has,
    lose_a_message_at_two_stores,
    use_a_stable_number_again,
    cut_what_is_stable,
    deliver_what_was_never_sent,
    deliver_what_an_older_life_sent,
    believe_a_receiver_that_said_nothing,
    get_a_reg_id_that_no_store_gave,
    begin_above_what_the_store_answered,
    grant_what_nobody_asked_for,
    answer_a_request_that_nobody_made,
    forget_a_client_that_did_not_leave,
    believe_an_announcement_of_what_was_not_sent,
    keep_what_was_never_sent,
]
