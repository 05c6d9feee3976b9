"""The identity of the rows that a sink writes, and what of a batch is left to write. Pure: no Spark, no store.

Spark repeats a batch that it did not commit, and may divide it into other partitions then. So a row is known by what no
division changes: its key, or its content. A topic keeps that with each message, in the property `stablecast-row`.
Equal rows count: a batch with three equal rows makes three messages.

A task leaves out the rows that the topic has from *other* attempts of the batch, and reports them. Equal rows may lie
in several partitions, and no task knows the others. So the driver compares at the end what the tasks left out with
what the topic has. It sends what is still missing, and refuses a batch of which the topic has rows too many.

An attempt notes when it is planned which life each source of the topic has (`Seen`). A lane that still has that life
may be held by a task of an earlier attempt, so it is taken before anybody looks; a lane with another life is a peer's.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from stablecast.core.errors import StablecastError

ROW: Final = "stablecast-row"
"""The property of a message that has its mark."""

DIGEST_BYTES: Final = 12
"""Bytes of an identity: among ten million rows, two differing ones have the same with a chance of 10^-15."""

EPOCH_BYTES: Final = 6
"""Bytes of the name of an attempt."""

MAX_KNOWN: Final = 5_000_000
"""Rows of a repeated batch that one task compares, at most; each takes about 150 bytes."""


class SinkError(StablecastError):
    """The messages cannot be written. The text names the reason."""


@attrs.frozen
class RowMark:
    """The mark of a message: who it is, and which attempt sent it.

    Attributes:
        batch: The number of its batch.
        place: How many messages of this batch its lane had before.
        epoch: The attempt: one run of a query, or one write of a table.
        digest: The identity of the row.
    """

    batch: int
    place: int
    epoch: str
    digest: str

    def __str__(self) -> str:
        return f"{self.batch}:{self.place}:{self.epoch}:{self.digest}"

    @classmethod
    def of(cls, text: object, who: str) -> "RowMark":
        """Return the mark in a property. One of an earlier release has no identity. Raises SinkError.

        >>> RowMark.of("3:7:e:d", "a lane"), RowMark.of("3:7", "a lane").digest
        (RowMark(batch=3, place=7, epoch='e', digest='d'), '')
        """
        parts = str(text).split(":")
        if len(parts) not in (2, 4) or not all(part.isascii() and part.isdecimal() for part in parts[:2]):
            raise SinkError(f"{who} has messages of another sender: name the sink otherwise")
        epoch, digest = parts[2:] or ("", "")
        return cls(int(parts[0]), int(parts[1]), epoch, digest)


@attrs.frozen
class Seen:
    """A source of the topic when the attempt was planned: its newest life, and one above its newest number."""

    life: int
    stop: int

    def has(self, life: int, number: int) -> bool:
        """Return whether a message was sent before, or by a task that had begun before."""
        return number < self.stop or life == self.life


def lanes_to_take(now: Mapping[int, int], seen: Mapping[int, Seen], own: int) -> set[int]:
    """Return the lanes that nobody registered since the attempt was planned, but for the own one.

    `now` has the newest life of each lane.
    """
    return {lane for lane, life in now.items() if lane != own and lane in seen and seen[lane].life == life}


def epoch_of(name: str) -> str:
    """Return the short name of an attempt."""
    return _short(hashlib.blake2b(name.encode(), digest_size=EPOCH_BYTES))


def content_of(payload: bytes, properties: Mapping[str, Any]) -> str:
    """Return the identity of a row without a key: its content."""
    found = hashlib.blake2b(len(payload).to_bytes(8), digest_size=DIGEST_BYTES)
    found.update(payload)
    if properties:
        found.update(json.dumps(properties, sort_keys=True).encode())
    return _short(found)


def key_of(values: Sequence[Any]) -> str:
    """Return the identity of a row with a key: the values of the columns that the user named."""
    return _short(hashlib.blake2b(json.dumps(values, default=repr).encode(), digest_size=DIGEST_BYTES))


def _short(found: "hashlib.blake2b") -> str:
    return base64.urlsafe_b64encode(found.digest()).decode().rstrip("=")


@attrs.define
class RowChoice:
    """The choice of one task: which of its rows it sends.

    Attributes:
        who: The batch, for sentences.
        own: The rows that an earlier task of this attempt sent for the same partition, by identity.
        others: The rows that other attempts of the batch sent, for any partition.
        later: The number of a later batch that the topic has; then nothing new may come.
        withheld: The rows that were left out because of `others`.
        sent, repeated: Counts of the rows that were sent now, and by an earlier task.
    """

    who: str
    own: Counter[str] = attrs.field(factory=Counter)
    others: Counter[str] = attrs.field(factory=Counter)
    later: int | None = None
    withheld: Counter[str] = attrs.field(factory=Counter)
    sent: int = 0
    repeated: int = 0

    def add(self, mark: RowMark, *, own: bool, before: bool = True) -> None:
        """Take a message of the batch that the topic has.

        Args:
            mark: Its mark.
            own: Whether a task of this attempt sent it for the same partition.
            before: Whether it is from a task that began before this attempt was planned (`Seen.has`).

        Raises:
            SinkError: It cannot be compared, or another attempt writes the batch at the same time.
        """
        if not own and not before:
            raise SinkError(f"another attempt writes {self.who} at this time: let one query have this name")
        if not mark.digest:
            raise SinkError(f"{self.who} was begun by a release that noted no identity of rows: end it with that one")
        (self.own if own else self.others)[mark.digest] += 1
        if self.own.total() + self.others.total() > MAX_KNOWN:
            raise SinkError(f"{self.who} has more than {MAX_KNOWN:,} rows to compare: make batches smaller")

    def sends(self, digest: str) -> bool:
        """Return whether the task sends a row with this identity. Raises SinkError."""
        if self.own[digest]:
            self.own[digest] -= 1
            self.repeated += 1
            return False
        if self.others[digest]:
            self.withheld[digest] += 1
            return False
        if self.later is not None:
            raise SinkError(
                f"{self.who} has rows that the topic has not, and batch {self.later} of it is there already: another "
                "query has this name, its checkpoint is another one, or limits let its rows go; name the sink otherwise"
            )
        self.sent += 1
        return True

    def end(self) -> None:
        """Check at the end of the rows that each one that was sent came again. Raises SinkError."""
        rest = self.own.total()
        if rest:
            raise SinkError(
                f"{rest} rows that an earlier task of {self.who} sent did not come again: the rows of a task must be "
                "the same each time; name the columns that tell rows apart with the option key"
            )


def missing_rows(who: str, withheld: Iterable[Counter[str]], others: Counter[str], *, keyed: bool) -> Counter[str]:
    """Return what tasks left out and the topic has not: equal rows of several partitions, of which some were there.

    Args:
        who: The batch, for sentences.
        withheld: What each task left out.
        others: What the topic has from other attempts of the batch.
        keyed: Whether rows are known by a key; then two rows never have the same one.

    Raises:
        SinkError: The topic has rows that the batch has not, or has so often not; or two rows have one key.
    """
    left = Counter[str]()
    for one in withheld:
        left.update(one)
    surplus = (others - left).total()
    if surplus:
        raise SinkError(
            f"the topic has {surplus} messages of {who} that its rows do not account for: the rows differ from those "
            "of an earlier attempt, another query writes under the same name, or a task of an earlier attempt wrote "
            "until now; those messages stay"
        )
    missing = left - others
    if missing and keyed:
        raise SinkError(
            f"{missing.total()} rows of {who} have the key of another row: name columns that tell rows apart"
        )
    return missing
