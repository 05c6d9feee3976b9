"""Tickets of a store's writes, and what is due when they are synced: grants, stability, farewells.

Each write has a *ticket*, counted up; `Persisted` names the newest ticket that is synced. Everything that waits for it
or an earlier one is then due, in the order written. Neighbouring runs of one life come back as one: a sync is
acknowledged once for each source, however many runs it covered.
"""

from collections import deque

import attrs

from stablecast.core.protocol.messages import Address, Deregistered, Incarnation


@attrs.define
class PendingSync:
    """The consequence of syncing `ticket`.

    With a `farewell` that goes `to` its address; with a generation `reg_id` is answered; else [first, stop) is synced.
    `kept`: a receiver that was registered here before.
    """

    ticket: int
    reg_id: int
    incarnation: Incarnation
    generation: int = -1
    old: bool = False
    kept: bool = False
    first: int = 0
    stop: int = 0
    farewell: Deregistered | None = None
    to: Address = ""

    def continued_by(self, run: "PendingSync") -> bool:
        """Return whether `run` is the next run of the same life."""
        return (
            self.first < self.stop
            and run.first < run.stop
            and (self.reg_id, self.incarnation, self.stop) == (run.reg_id, run.incarnation, run.first)
        )


@attrs.define
class SyncTickets:
    """The tickets of one store; `last` is the newest drawn, `synced` the newest reported.

    The driver bounds what may wait: it syncs in time.
    """

    last: int = 0
    synced: int = 0
    waiting: deque[PendingSync] = attrs.field(factory=deque)

    @property
    def pending(self) -> bool:
        """True if anything is still to be synced, so that a report will come."""
        return self.synced < self.last

    def draw(self) -> int:
        self.last += 1
        return self.last

    def draw_for(self, reg_id: int, incarnation: Incarnation, first: int, stop: int) -> int:
        """Return the next ticket, for a write of [first, stop) from this life."""
        self.last = ticket = self.last + 1
        self.waiting.append(PendingSync(ticket, reg_id, incarnation, first=first, stop=stop))
        return ticket

    def wait(self, what: PendingSync) -> None:
        """Remember what the newest ticket brings."""
        self.waiting.append(what)

    def drop(self, reg_id: int, number: int) -> None:
        """Let the tickets of a source bring nothing from `number` on, because a cut follows these writes.

        Its life may come back and send the same numbers again before the old tickets are reported. Then a crash may
        leave the cut on the disk, and not the newer writes.
        """
        for run in self.waiting:
            if run.reg_id == reg_id and run.stop > number:
                run.stop = max(run.first, number)

    def due(self, ticket: int) -> list[PendingSync]:
        """Count everything up to `ticket` as synced; return what waited for that, oldest first."""
        self.synced = max(self.synced, ticket)
        due: list[PendingSync] = []
        while self.waiting and self.waiting[0].ticket <= ticket:
            run = self.waiting.popleft()
            # One acknowledgement for a whole sync: one for each run would cost the source a message each.
            if due and due[-1].continued_by(run):
                due[-1] = attrs.evolve(due[-1], ticket=run.ticket, stop=run.stop)
            else:
                due.append(run)
        return due
