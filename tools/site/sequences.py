"""Draw a sequence diagram from the traces of a run: messages, registrations, acknowledgements and questions."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

MOST_ARROWS: Final = 32
"""Arrows of one picture; a run that has more ends with a note."""

READER: Final = "reader"
"""The name of a requester that registers nowhere."""

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
        if self.first is None:
            numbers = ""
        else:
            numbers = f" {self.first}" if self.first == self.last else f" {self.first}..{self.last}"
        return f"    {self.sender}->>{self.receiver}: {self.word}{numbers}"


def sequence(lines: Iterable[str]) -> str:
    """Return the diagram of the records that `stablecast trace dump --json` prints."""
    records = sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda one: (one["t"], one["n"]))
    names = _names(records)
    people = list(dict.fromkeys(names.values()))
    drawn: list[Arrow | str] = []
    for arrow in _Reading(names).arrows(records):
        if isinstance(arrow, Arrow):
            people += [end for end in (arrow.sender, arrow.receiver) if end not in people]
            if drawn and isinstance(last := drawn[-1], Arrow) and arrow.follows(last):
                last.last = arrow.last
                continue
        drawn.append(arrow)
    shown = [str(arrow) for arrow in drawn[:MOST_ARROWS]]
    if len(drawn) > MOST_ARROWS:
        shown.append(f"    Note over {people[0]}: and {len(drawn) - MOST_ARROWS} more")
    return "\n".join(["sequenceDiagram", *(f"    participant {name}" for name in people), *shown, ""])


def _names(records: list[dict[str, Any]]) -> dict[str, str]:
    """Return a short name for each trace, in the order of their roles. A store that starts again keeps its name."""
    found: dict[str, str] = {}
    for role in ORDER:
        place_of = "endpoint" if role == "store" else "file"
        own = {one["file"]: one[place_of] for one in records if one["role"] == role}
        ordered = sorted(own.items(), key=lambda one: (_natural(one[1]), _natural(one[0])))
        places = list(dict.fromkeys(place for _, place in ordered))
        for file, place in ordered:
            found[file] = role if len(places) == 1 else f"{role}{places.index(place) + 1}"
    return found


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key to sort by: file 10 of a process is later than file 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


class _Reading:
    """Read records in the order of time, and remember who has which address, RegID and life."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._homes: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._servers: dict[str, str] = {}

    def arrows(self, records: list[dict[str, Any]]) -> Iterator[Arrow | str]:
        """Yield an arrow for each input that another endpoint caused, and a note when a store starts again."""
        for record in records:
            here, event = self._names[record["file"]], record["in"]
            if self._seen.setdefault(here, record["file"]) != record["file"]:
                self._seen[here] = record["file"]
                yield f"    Note over {here}: starts again"
            self._learn(record, here)
            if event["_"] == "Data":
                yield self._data(event, here)
            elif event["_"] == "Arrived":
                yield from self._arrived(record, event["message"], here)

    def _data(self, event: dict[str, Any], here: str) -> Arrow:
        number, source = event["wire_first"], self._homes.get(f"life {event['incarnation']}", "source")
        sender = self._servers.get(here, source) if event["recovered"] else source
        word = "sends again" if event["recovered"] else "sends"
        return Arrow(sender, here, word, number, number + event["count"] - 1)

    def _arrived(self, record: dict[str, Any], message: dict[str, Any], here: str) -> Iterator[Arrow]:
        there = self._other(record, message)
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
                for sent in record["out"] if there == READER else ():  # a reader has no trace that would show them
                    if sent["_"] == "SendStored":
                        yield Arrow(here, there, "sends again", sent["first"], sent["last"])
            case _:
                pass

    def _learn(self, record: dict[str, Any], here: str) -> None:
        """Note the name of an endpoint by its address, RegID and life, and who sends stored messages to whom."""
        homes, role = self._homes, record["role"]
        if role == "store":
            homes[record["endpoint"]] = here
            homes.setdefault("store", here)
        for effect in record["out"]:
            message = effect.get("message", {})
            if message.get("_") == "Register":
                homes[f"{role} {message['store_index']}"] = effect["to"]
                homes[f"{message['reply_to']} {message['incarnation']} {message['role']}"] = here
                if role == "receiver":
                    homes[f"{message['reply_to']} {message['incarnation']}"] = here
                if role == "source":
                    homes[f"life {message['incarnation']}"] = here
            elif effect["_"] == "SendStored":
                self._servers[self._requester(effect["to"], effect["session"])] = here
        if record["in"]["_"] == "Arrived" and record["in"]["message"]["_"] == "Registered":
            homes[f"reg {record['in']['message']['reg_id']}"] = here

    def _requester(self, address: str, life: int) -> str:
        """Return the name of a receiver of this life, or of a store, by its address."""
        return self._homes.get(f"{address} {life}") or self._homes.get(address, READER)

    def _other(self, record: dict[str, Any], message: dict[str, Any]) -> str:
        homes = self._homes
        if message["_"] == "RetransmitRequest":
            return self._requester(message["reply_to"], message["incarnation"])
        if record["role"] == "store":
            if message["_"] == "Register":
                return homes.get(f"{message['reply_to']} {message['incarnation']} {message['role']}", "source")
            return homes.get(f"reg {message.get('receiver_reg_id', message.get('reg_id'))}", "receiver")
        if message["_"] == "ConsumptionAck":
            return homes.get(f"reg {message['receiver_reg_id']}", "receiver")
        address = homes.get(f"{record['role']} {message.get('store_index', 0)}", "")
        return homes.get(address, homes.get("store", "store"))
