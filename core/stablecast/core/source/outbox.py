"""The outbox of a source: the numbers of its messages, the credit that they use, and when they leave.

The machine (`endpoint`) grants credit and learns of messages after they have left. The outbox has all that were taken
since: those that wait, and those that left and were not reported yet. So credit has one owner, and a driver only asks.

Credit is a limit on numbers and one on bytes, not a count that each message lowers. A limit may be too low after the
machine has granted more, but it is never too high; `renew` takes it over.

A block is what leaves together: consecutive messages as columns. It has plain messages, or others: with properties,
with a hot number, or cut into pieces. *Batching* decides when it leaves:

* By default the first few messages of a turn of the event loop leave at once. Later ones leave when the turn ends, or
  when they fill a block.
* With an interval, a block leaves at its minimum length, or when its oldest message has waited for the interval.
* In a batch of the application, a block leaves when it is full, and when the batch ends.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import attrs

from stablecast.core.protocol.inputs import Blocked, Sent
from stablecast.core.protocol.settings import FlightBehavior
from stablecast.core.source.endpoint import SourceEndpoint
from stablecast.core.source.stability import OVERHEAD_BYTES

FLUSH_BYTES: Final = 32 * 1024
"""Bytes at which a block leaves."""

MAX_BLOCK_BYTES: Final = 4 * FLUSH_BYTES
"""Payload bytes of a block from a list, whose messages may be much longer than its first one."""

PROMPT_MESSAGES: Final = 4
"""Messages that leave at once in a turn of the event loop. A source that sends more gains by blocks."""

TURN_MESSAGES: Final = 1024
"""Messages of a block, and messages after which a sending task lets other tasks run."""

NO_LIMIT: Final = 1 << 62
"""Credit of a source that has no flight, in messages and in bytes."""

WAITS, PROMPT, FULL, PLAN, REFUSED = 0, 1, 2, 4, 8
"""What a driver does after a message was taken: nothing; let the message leave at once; flush, because the block is
full. With `PLAN` it also plans the end of the turn, or of the interval. `REFUSED`: no message was taken."""


class Extra(NamedTuple):
    """What a message has that a plain one has not: bytes of properties at its end, its hot number, its pieces."""

    properties: int
    hot_number: int | None
    pieces: int


@attrs.define
class Block:
    """Messages that leave together.

    Attributes:
        first: The number of the first.
        count: How many numbers they have.
        payload_bytes: Their bytes, with properties.
        payloads: Their payloads, each with its properties behind it.
        extras: What each of them has beside, empty for plain messages.
        large: The first and last number of each message that was cut.
    """

    first: int
    count: int
    payload_bytes: int
    payloads: Sequence[bytes]
    extras: Sequence[Extra] = ()
    large: tuple[tuple[int, int], ...] = ()


@attrs.define
class Outbox:
    """The messages of one life of a source that its machine does not know yet.

    Attributes:
        machine: The machine that grants credit.
        next: The number of the next message.
        held: The transport takes no message now.
        ended: No message may be sent any more.
        collects: Messages wait for their block.
        prompt: Messages that left at once in this turn.
        calm: The last turn sent no more than leaves at once.
        batches: Batches of the application that are open.
        longest: Bytes of the longest message that `offer` takes. It takes none while others than plain ones wait.
    """

    machine: SourceEndpoint
    next: int = 0
    held: bool = False
    ended: bool = False
    collects: bool = False
    prompt: int = 0
    calm: bool = True
    batches: int = 0
    longest: int = NO_LIMIT
    span_ns: int = 0
    _least: int = FLUSH_BYTES
    _floor: int = FLUSH_BYTES
    _total: int = 0
    _last: int = 0
    _most: int = NO_LIMIT
    _full: int = FLUSH_BYTES
    _payloads: list[bytes] = attrs.field(factory=list)
    _others: dict[int, Extra] = attrs.field(factory=dict)
    _joined: int = 0
    _plain: int = NO_LIMIT
    _left: int = 0
    _left_bytes: int = 0
    _told: int = 0
    _told_bytes: int = 0
    _telling: deque[tuple[int, int]] = attrs.field(factory=deque)
    _known_bytes: int = 0
    _turn_began: int = 0
    _begun: bool = False
    _turned_away: bool = False
    _limited: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Find out whether the flight limits anything: a streaming source has none, and one that notifies sends on."""
        config = self.machine.config
        self._limited = bool(config.stores) and config.flight_behavior is FlightBehavior.BLOCK

    # ------------------------------------------------------------------------------------------------------- settings

    def collect(self, least: int, span_ns: int) -> None:
        """Set when a block leaves: at `least` bytes, or after `span_ns` nanoseconds (0: when the turn ends)."""
        self._least, self.span_ns = least, span_ns
        self._set_floor()

    def limit(self, plain: int) -> None:
        """Let `offer` take messages of up to `plain` bytes, below 0: none."""
        self._plain = self.longest = plain

    def begin(self, number: int) -> None:
        """Give credit, because enough stores have registered the source. The first time fixes the first number."""
        if not self._begun:
            self._begun = True
            self.next = number
            self._left = self._told = number
            self._set_floor()
        self.renew()

    # --------------------------------------------------------------------------------------------------------- credit

    @property
    def begun(self) -> bool:
        """True once enough stores have registered the source."""
        return self._begun

    @property
    def may_send(self) -> bool:
        """True while enough stores are registered, and the source has not ended."""
        return self._begun and not self.ended and self.machine.can_send

    @property
    def credit(self) -> int:
        """The messages that may be taken now; a message that is cut counts once."""
        self.renew()
        return max(0, self._last - self.next)

    def renew(self) -> None:
        """Take over the credit that the machine grants, less what it does not know yet."""
        machine = self.machine
        if self.held or not self.may_send:
            self._last = self.next
        elif self._limited:
            known = machine.next_number
            while self._telling and self._telling[0][0] <= known:
                self._known_bytes = self._telling.popleft()[1]
            self._last = known + machine.credit_messages + self._joined
            room = machine.credit_bytes
            self._most = NO_LIMIT if room is None else self._known_bytes + room
        else:
            self._last = self._most = NO_LIMIT

    def fits(self, size: int) -> bool:
        """Return whether a message of `size` bytes may be taken now."""
        if self.next < self._last and self._total + size <= self._most:
            return True
        self.renew()
        return self.next < self._last and self._total + size <= self._most

    def check_size(self, size: int) -> None:
        """Raise OversizeError for a message that could never be sent (T14)."""
        if self._limited:
            self.machine.check_size(size)

    def refuse(self, size: int) -> Blocked | None:
        """Note that a message of `size` bytes found no credit; return the question for a `Wakeup`, if it comes so."""
        self._turned_away |= self.held
        return None if self.held else Blocked(size)

    def hold(self, held: bool) -> bool:
        """Take messages or not, because the transport has room or is full; return whether somebody waits for room."""
        self.held = held
        self.renew()
        waits, self._turned_away = self._turned_away and not held, self._turned_away and held
        return waits

    # ------------------------------------------------------------------------------------------------------- messages

    def offer(self, payload: bytes) -> int:
        """Take a plain message with the next number, and return what follows. Most calls of a busy source end here."""
        number, size = self.next, len(payload)
        total = self._total + size
        if number >= self._last or total > self._most or size > self.longest:
            return REFUSED
        self._total = total
        self.next = number = number + 1
        self._payloads.append(payload)
        if self.collects and total + OVERHEAD_BYTES * number < self._full:
            return WAITS
        return self._decide()

    def add(self, payload: bytes, extra: Extra | None = None) -> int:
        """Take any message, which `fits`; return what follows. A plain message has no `extra`."""
        number, pieces = self.next, 1
        if extra is not None:
            pieces = extra.pieces
            self._others[number] = extra
            self._joined += pieces - 1
            self.longest = -1
        self._total += len(payload)
        self.next = number + pieces
        self._payloads.append(payload)
        return self._decide()

    def block_of(self, messages: Sequence[Any], at: int) -> Block | None:
        """Take messages from index `at` on as one block, while none waits.

        Return None if the next message must be sent alone: none fits, one is not bytes, or one is too long.
        """
        self.renew()
        first = messages[at]
        if first.__class__ is not bytes:
            return None
        room = min(self._last - self.next, TURN_MESSAGES, FLUSH_BYTES // (OVERHEAD_BYTES + len(first)) + 1)
        several = messages[at : at + max(0, room)]
        if set(map(type, several)) != {bytes}:
            return None
        sizes = list(map(len, several))
        total = sum(sizes)
        if total > min(self._most - self._total, MAX_BLOCK_BYTES) or max(sizes) > self.longest:
            return None
        self._total += total
        self.next += len(several)
        return self._leaving(Block(self._left, len(several), total, several))

    # --------------------------------------------------------------------------------------------------------- blocks

    def mixes(self, extra: Extra | None) -> bool:
        """Return whether messages of the other kind wait, which never share a block with this one."""
        return bool(self._payloads) and bool(self._others) is (extra is None)

    @property
    def waiting(self) -> bool:
        """True while messages wait for their block."""
        return bool(self._payloads)

    def take(self) -> Block:
        """Remove and return the next block that waits; one must."""
        payloads = self._payloads
        if self._others:
            return self._leaving(self._part())
        first, before, number, total = self._left, self._left_bytes, self.next, self._total
        self._payloads = []
        self._left, self._left_bytes = number, total
        self._full = total + OVERHEAD_BYTES * number + self._floor
        if number >= self._last:  # It may be too low, and the next message should not have to ask.
            self.renew()
        return Block(first, number - first, total - before, payloads)

    def take_one(self) -> tuple[int, bytes] | None:
        """Remove and return the only message that waits, with its number; None if it is not plain, or one of several.

        Most messages of a source that is not busy leave so, and a block of each would cost a tenth of it.
        """
        if self._others or len(self._payloads) != 1:
            return None
        first, number, total = self._left, self.next, self._total
        self._left, self._left_bytes = number, total
        self._full = total + OVERHEAD_BYTES * number + self._floor
        if number >= self._last:
            self.renew()
        return first, self._payloads.pop()

    def _part(self) -> Block:
        """Remove the longest beginning that is all plain, or all other."""
        first, others = self._left, self._others
        stop = next(iter(others))
        if stop > first:
            payloads = self._payloads[: stop - first]
            del self._payloads[: stop - first]
            return Block(first, stop - first, sum(map(len, payloads)), payloads)
        extras: list[Extra] = []
        large: list[tuple[int, int]] = []
        while extra := others.pop(stop, None):
            extras.append(extra)
            stop += extra.pieces
            if extra.pieces > 1:
                large.append((stop - extra.pieces, stop - 1))
                self._joined -= extra.pieces - 1
        payloads = self._payloads[: len(extras)]
        del self._payloads[: len(extras)]
        self.longest = -1 if others else self._plain
        return Block(first, stop - first, sum(map(len, payloads)), payloads, extras, tuple(large))

    def _leaving(self, block: Block) -> Block:
        self._left += block.count
        self._left_bytes += block.payload_bytes
        self._set_floor()
        return block

    def _set_floor(self) -> None:
        self._floor = max(FLUSH_BYTES, self._least) if self.batches else self._least
        self._full = self._left_bytes + OVERHEAD_BYTES * self._left + self._floor

    # --------------------------------------------------------------------------------------------- when a block leaves

    def _decide(self) -> int:
        """Return what follows the newest message."""
        act = WAITS
        if not self.collects:
            act = PLAN
            if not self.span_ns:
                if self.prompt:
                    act = WAITS
                else:
                    self._turn_began = self._left
                self.prompt += 1
                self.collects = self.prompt >= PROMPT_MESSAGES
                return act | PROMPT
            self.collects = True
        return act | FULL if self._total + OVERHEAD_BYTES * self.next >= self._full else act

    def end_interval(self) -> None:
        """Let the next message plan again, because everything leaves now. A batch of the application goes on."""
        self.collects = bool(self.batches)

    def end_turn(self) -> int:
        """End the turn; return `FULL` if messages leave now, `PLAN` if there is only something to report soon."""
        self.calm = self.next - self._turn_began <= PROMPT_MESSAGES
        self.prompt = 0
        if self.batches:
            return WAITS
        self.collects = False
        return FULL if self._payloads else PLAN if self._told < self._left else WAITS

    def open_batch(self) -> None:
        """Collect until the batch is closed."""
        self.batches += 1
        self.collects = True
        self._set_floor()

    def close_batch(self) -> bool:
        """Close a batch; return whether it was the last, so that what waits leaves now."""
        self.batches -= 1
        if not self.batches:
            self.collects = False
            self._set_floor()
        return not self.batches

    def report(self, large: tuple[tuple[int, int], ...] = ()) -> Sent | None:
        """Return what left and was not reported yet, for the machine, None if it knows everything."""
        first, before, stop, total = self._told, self._told_bytes, self._left, self._left_bytes
        if stop == first:
            return None
        self._told, self._told_bytes = stop, total
        if self._limited:
            self._telling.append((stop, total))
        return Sent(first, stop - first, total - before, large)
