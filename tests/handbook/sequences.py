"""Draw a sequence diagram from the traces of a run: messages, registrations, acknowledgements and questions."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

MOST_ARROWS: Final = 24
"""Arrows of one picture; a run that has more ends with a note."""

NO_NUMBER: Final = 0xFFFF_FFFF
ORDER: Final = {"source": 0, "store": 1, "receiver": 2}
WORDS: Final = {"Register": "registers", "Registered": "granted", "StableAck": "synced", "Deregister": "leaves"}


@attrs.define
class Arrow:
    """One arrow: its ends, its word, and the numbers that it concerns."""

    sender: str
    receiver: str
    word: str
    first: int | None = None
    last: int | None = None

    def follows(self, other: "Arrow") -> bool:
        """Return whether this arrow only continues another one."""
        ends = (self.sender, self.receiver, self.word) == (other.sender, other.receiver, other.word)
        return ends and (self.first is None or (other.last is not None and self.first <= other.last + 1))

    def __str__(self) -> str:
        """Return the line of the diagram."""
        if self.first is None:
            numbers = ""
        else:
            numbers = f" {self.first}" if self.first == self.last else f" {self.first}..{self.last}"
        return f"    {self.sender}->>{self.receiver}: {self.word}{numbers}"


def sequence(lines: Iterable[str]) -> str:
    """Return the diagram of the records that `stablecast trace dump --json` prints."""
    records = sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda one: (one["t"], one["n"]))
    names = _names(records)
    drawn: list[Arrow] = []
    for arrow in _arrows(records, names):
        if drawn and arrow.follows(drawn[-1]):
            drawn[-1].last = arrow.last
        else:
            drawn.append(arrow)
    shown = [str(arrow) for arrow in drawn[:MOST_ARROWS]]
    if len(drawn) > MOST_ARROWS:
        shown.append(f"    Note over {next(iter(names.values()))}: and {len(drawn) - MOST_ARROWS} more")
    people = [f"    participant {name}" for name in names.values()]
    return "\n".join(["sequenceDiagram", *people, *shown, ""])


def _names(records: list[dict[str, Any]]) -> dict[str, str]:
    """Return a short name for each trace, in the order of their roles."""
    files = {one["file"]: one["role"] for one in records}
    found: dict[str, str] = {}
    for role in ORDER:
        own = sorted(file for file, of in files.items() if of == role)
        found |= {file: role if len(own) == 1 else f"{role}{index}" for index, file in enumerate(own, 1)}
    return found


def _arrows(records: list[dict[str, Any]], names: dict[str, str]) -> Iterator[Arrow]:
    """Yield an arrow for each input that another endpoint caused."""
    homes: dict[str, str] = {}
    source = next((name for name in names.values() if name.startswith("source")), "source")
    for record in records:
        here, event = names[record["file"]], record["in"]
        _learn(homes, record, here)
        if event["_"] == "Data":
            number = event["wire_first"]
            sender = homes.get("store", source) if event["recovered"] and here.startswith("receiver") else source
            word = "sends again" if event["recovered"] else "sends"
            yield Arrow(sender, here, word, number, number + event["count"] - 1)
        elif event["_"] == "Arrived":
            message = event["message"]
            there = _other(record, message, homes)
            match message["_"]:
                case "Register" | "Registered" | "Deregister":
                    yield Arrow(there, here, WORDS[message["_"]])
                case "StableAck":
                    yield Arrow(there, here, WORDS["StableAck"], message["first"], message["last"])
                case "ConsumptionAck":
                    word = "consumed through" if record["role"] == "store" else "confirms"
                    yield Arrow(there, here, word, message["number"], message["number"])
                case "RetransmitRequest":
                    yield Arrow(there, here, "asks for", message["first"], message["last"])
                case _:
                    pass


def _learn(homes: dict[str, str], record: dict[str, Any], here: str) -> None:
    """Note the name of an endpoint by its address, its RegID, and its place in a list of stores; the newest counts."""
    if record["role"] == "store":
        homes[record["endpoint"]] = here
        homes.setdefault("store", here)
    for effect in record["out"]:
        message = effect.get("message", {})
        if message.get("_") == "Register":
            homes[f"{record['role']} {message['store_index']}"] = effect["to"]
            homes[f"{message['reply_to']} {message['role']}"] = here
    if record["in"]["_"] == "Arrived" and record["in"]["message"]["_"] == "Registered":
        homes[f"reg {record['in']['message']['reg_id']}"] = here


def _other(record: dict[str, Any], message: dict[str, Any], homes: dict[str, str]) -> str:
    """Return the name of the sender of a message."""
    if record["role"] == "store":
        if message["_"] == "Register":
            return homes.get(f"{message['reply_to']} {message['role']}", "source")
        if message["_"] == "RetransmitRequest":
            return homes.get(f"{message['reply_to']} {message['by']}", "receiver")
        return homes.get(f"reg {message.get('receiver_reg_id', message.get('reg_id'))}", "receiver")
    if message["_"] == "ConsumptionAck":
        return homes.get(f"reg {message['receiver_reg_id']}", "receiver")
    address = homes.get(f"{record['role']} {message.get('store_index', 0)}", "")
    return homes.get(address, homes.get("store", "store"))
