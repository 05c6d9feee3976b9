"""What waits to leave through one portal: fair between sources, bounded in bytes, and counted when it is dropped.

Each source has a queue of its own, in which control messages stay behind the data before them: a high-water mark that
overtook its data would look like a loss (R-171). When the bytes of the portal exceed its bound, the newest message of
the source with the most bytes is dropped. So a source that floods loses its own messages, and nobody else's.
"""

from collections import deque

import attrs

from stablecast.core.machine.ranges import RangeSet

MAX_QUEUE_BYTES = 1_000_000
"""Bytes that may wait for one portal by default."""

MAX_LOST_RANGES = 64
"""Ranges of dropped numbers that are remembered for one source; older ones are counted only."""


@attrs.frozen
class QueuedBlock:
    """Messages that wait: their bytes, and the numbers of the data among them (extended; none: control)."""

    octets: bytes
    first: int = 0
    count: int = 0


@attrs.define
class SourceQueue:
    """The queue of one source.

    Attributes:
        lost: The newest ranges of numbers that were dropped.
        cut: Whether something was dropped since all could leave.
    """

    blocks: deque[QueuedBlock] = attrs.field(factory=deque)
    size: int = 0
    closed: bool = False
    cut: bool = False
    lost: RangeSet = attrs.field(factory=RangeSet)


@attrs.define
class PortalQueues:
    """The queues of a portal, by source.

    Attributes:
        most_bytes: The bound of all of them.
        held: Whether nothing leaves now, whatever its source.
        size: Bytes that wait now.
        peak: The most bytes that ever waited.
        dropped: Messages that were dropped.
    """

    most_bytes: int = MAX_QUEUE_BYTES
    held: bool = attrs.field(default=False, init=False)
    queues: dict[bytes, SourceQueue] = attrs.field(factory=dict, init=False)
    size: int = attrs.field(default=0, init=False)
    peak: int = attrs.field(default=0, init=False)
    dropped: int = attrs.field(default=0, init=False)

    def shut(self, source: bytes) -> None:
        """Let the messages of a source wait from now on."""
        self._of(source).closed = True

    def passes(self, source: bytes) -> bool:
        """Return whether a message of a source may leave at once: nothing of it waits, and nothing holds it."""
        found = self.queues.get(source)
        return not self.held and (found is None or not (found.closed or found.blocks))

    def first(self, source: bytes) -> int | None:
        """Return the first number of a source that waits, or None if none does."""
        found = self.queues.get(source)
        return None if found is None else next((block.first for block in found.blocks if block.count), None)

    def put(self, source: bytes, block: QueuedBlock) -> None:
        """Let messages of a source wait, and drop what exceeds the bound."""
        queue = self._of(source)
        queue.blocks.append(block)
        queue.size += len(block.octets)
        self.size += len(block.octets)
        while self.size > self.most_bytes:
            self._drop(max(self.queues.values(), key=lambda one: one.size))
        self.peak = max(self.peak, self.size)

    def open(self, source: bytes) -> list[QueuedBlock]:
        """Return what waits of a source, in order, and let its next messages leave at once."""
        queue = self._of(source)
        queue.closed = False
        taken = list(queue.blocks)
        self.size -= queue.size
        queue.blocks.clear()
        queue.size = 0
        return taken

    def release(self) -> list[tuple[bytes, list[QueuedBlock], bool]]:
        """Let everything leave again; return what waits of each source, and whether the last of it was dropped."""
        self.held = False
        found = []
        for source, queue in self.queues.items():
            cut, queue.cut = queue.cut, False
            found.append((source, self.open(source), cut))
        return found

    def forget(self, source: bytes) -> None:
        """Remove a source with what waits of it, because its proxy is closed (R-169)."""
        queue = self.queues.pop(source, None)
        if queue is not None:
            self.size -= queue.size

    def _of(self, source: bytes) -> SourceQueue:
        return self.queues.setdefault(source, SourceQueue())

    def _drop(self, queue: SourceQueue) -> None:
        block = queue.blocks.pop()
        queue.cut = True
        queue.size -= len(block.octets)
        self.size -= len(block.octets)
        self.dropped += block.count
        if block.count:
            queue.lost.add(block.first, block.first + block.count)
            if len(queue.lost) > MAX_LOST_RANGES:
                queue.lost.forget(queue.lost.ranges[1][0])
