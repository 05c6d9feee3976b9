"""Proxy elections: one store replaces a source that fell silent, so that receivers can still join and recover.

    WATCHING --silent--> WAITING --over--> STANDING --own--> SERVING     --silent, lost--> WAITING
                         WAITING --taken---------------> FOLLOWING       --silent--> WAITING
    any other --returned--> WATCHING             STANDING, SERVING --taken--> FOLLOWING, --overtaken, failed--> WAITING

A *proxy* is an ordinary source that registers with all stores of the real one, the store that runs it included, under
the same RegID or session id. Its registration carries a token, and stores learn of each other's proxies by these
registrations alone.

* A store waits between half and one and a half election intervals after the RegID's holder fell silent, so that one
  store is first (P-547, P-552). It stands if no proxy of another store has registered by then (P-553).
* **Lower wins** (P-554, C-14): tokens are random, and unique with the index of the store. A standing store yields to a
  lower token and refuses a higher one. A store that follows one proxy moves to another only for a lower token. So the
  lowest of all remains, once their registrations reached each other.
* A registration with our own token is that of our own proxy, and no news (T23); if that proxy has ended, it is late.
* The holder of the RegID may fall silent again: the source, the proxy of another store (P-548), or our own. Then the
  election begins anew, as it does if our proxy does not register with us within an interval.
* Our proxy ends when it learns that a later life was counted, or when it fails. It announces nothing more, and while it
  had the RegID no other proxy could stand in.
* The real source takes its RegID back from any holder: the one theft of an active RegID, in one step with the end of
  the proxy (P-541; formal design, 7.9).
* With Repair.ELECTION a proxy never takes the RegID of an active source. While nobody has it, a proxy for a life that
  is known to be over is late, because nobody would ever answer for it. Between two proxies tokens alone decide, because
  stores may disagree on the last life. Without the repair any proxy moves the RegID, and tokens are compared by value
  alone, so that of two equal ones neither yields.
* The state lifetime counts from the last sign of life of the real source, whoever held the RegID since (P-533, T7).
  Without one, state stays while a proxy holds the RegID or this store may still run one (P-535).
* **Quorum required** (proxy-source-repo-quorum-required, C-40): only stores that have state of the source let a proxy
  register, so its quorum is one of stores with state. Our proxy serves when it has that quorum, and ends when it loses
  it. Each try without one doubles the wait before the next. A registration of the source, or of another store's proxy,
  resets the wait.
* A restart re-arms: the timers of the store begin anew, our proxy is gone, and that of another may still exist.
"""

from enum import IntEnum

import attrs

from stablecast.core.machine.chart import Chart, States, fire, lower
from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.timers import TimerTable
from stablecast.core.protocol.effects import Effect, Notify, StartProxy, StopProxy
from stablecast.core.protocol.events import ProxyEnded, ProxyStarted
from stablecast.core.protocol.messages import ElectionToken, Incarnation, Register
from stablecast.core.protocol.settings import STATE_FOR_EVER
from stablecast.core.store.clients import ClientRecord

TOKEN_VALUES = 1 << 32
"""Count of distinct token values: 32 bits on the wire."""

MAX_PAST = 16
"""Ended lives of one source, and ended proxies of ours, that are remembered; following an older one costs one timeout.
"""

MAX_DOUBLINGS = 4
"""Doublings of the wait at most, after tries without a quorum."""


class ElectionState(IntEnum):
    """The holder of the source's RegID at this store."""

    WATCHING = 0
    """The source holds it."""
    WAITING = 1
    """No live process holds it."""
    STANDING = 2
    """Our proxy is to have it; it has not registered here yet, or not with the required quorum."""
    SERVING = 3
    """Our proxy holds it."""
    FOLLOWING = 4
    """The proxy of another store holds it."""


class ElectionEvent(IntEnum):
    SILENT = 0
    RETURNED = 1
    TAKEN = 2
    OWN = 3
    OVER = 4
    LOST = 5
    OVERTAKEN = 6
    FAILED = 7


class ElectionTimer(IntEnum):
    """WAIT: our turn has come, or our proxy did not register. EXPIRE: the state of the source is to be deleted."""

    WAIT = 0
    EXPIRE = 1


_ENDINGS = {
    ElectionEvent.SILENT: "it fell silent",
    ElectionEvent.RETURNED: "the source is back",
    ElectionEvent.TAKEN: "another store's proxy has the lower token",
    ElectionEvent.OVER: "it did not register in time",
    ElectionEvent.LOST: "it lost the quorum of stores that have its state",
    ElectionEvent.OVERTAKEN: "a later life was counted",
    ElectionEvent.FAILED: "it failed",
}


class ElectionChart(Chart):
    """The chart of an election of a proxy for one source, at one store."""

    states = States.from_enum(ElectionState, initial=ElectionState.WATCHING, use_enum_instance=True)

    silent = (
        states.WATCHING.to(states.WAITING, on=["count", "wait"])
        | states.SERVING.to(states.WAITING, on=["stop", "wait"])
        | states.FOLLOWING.to(states.WAITING, on="wait")
    )
    returned = (
        states.WAITING.to(states.WATCHING, on="settle")
        | states.STANDING.to(states.WATCHING, on=["stop", "settle"])
        | states.SERVING.to(states.WATCHING, on=["stop", "settle"])
        | states.FOLLOWING.to(states.WATCHING, on="settle")
    )
    taken = (
        states.WATCHING.to(states.FOLLOWING, on=["count", "follow"])
        | states.WAITING.to(states.FOLLOWING, on="follow")
        | states.STANDING.to(states.FOLLOWING, on=["stop", "follow"])
        | states.SERVING.to(states.FOLLOWING, on=["stop", "follow"])
        | states.FOLLOWING.to.itself(internal=True, on="follow")
    )
    own = states.STANDING.to(states.SERVING, on="serve")
    over = (
        states.WAITING.to(states.STANDING, cond="informed", on="stand")
        | states.WAITING.to.itself(internal=True, on="wait")
        | states.STANDING.to(states.WAITING, on=["stop", "try_later", "wait"])
    )
    lost = states.SERVING.to(states.WAITING, on=["stop", "wait"])
    overtaken = states.WAITING.from_(states.STANDING, states.SERVING, on=["stop", "wait"])
    failed = states.WAITING.from_(states.STANDING, states.SERVING, on=["stop", "wait"])


@attrs.define
class Election:
    """The election for one source. Spans in ns. The store's record of the source comes with every call.

    Attributes:
        may_stand: This store runs proxies, and the source asked for one.
        life: The newest life of the source known here; `past` has those before.
        holder: The token of the proxy that has the RegID, ours or another's.
        ended: The tokens of our proxies that ended.
        quorum: A proxy needs a quorum; `backed`: ours has it; `tries` had none.
    """

    seeded: Seeded
    may_stand: bool
    repaired: bool
    interval_ns: int
    life: Incarnation
    quorum: bool = False
    past: list[Incarnation] = attrs.field(factory=list)
    state: ElectionState = ElectionState.WATCHING
    holder: ElectionToken | None = None
    ended: list[ElectionToken] = attrs.field(factory=list)
    backed: bool = False
    tries: int = 0
    timers: TimerTable = attrs.field(factory=TimerTable)

    @property
    def ours(self) -> bool:
        """True if this store runs the proxy."""
        return self.state in (ElectionState.STANDING, ElectionState.SERVING)

    def admits(self, token: ElectionToken) -> bool:
        """Return whether the proxy with this token may have the RegID."""
        if self._has_ended(token):
            return False
        if self.state is ElectionState.WATCHING:
            # The proxy's store may only be cut off from a source that is active here (formal 7.9).
            return not self.repaired
        if self.holder is None:
            # Nobody runs a proxy for a life that is over. To follow it costs a timeout (formal 7.9).
            return not (self.repaired and token.life in self.past)
        # Stores may disagree on the last life, so tokens alone decide between two proxies.
        return token.rank == self.holder.rank or self._beats(token, self.holder)

    def resume(self, token: ElectionToken, record: ClientRecord, now: int) -> None:
        """Resume after a restart, when the proxy with this token held the RegID; our own ended with the process."""
        if token.store_index == record.client.store_index:
            self.ended.append(token)
            self._fire(_E.SILENT, record, now, [])
        else:
            self._fire(_E.TAKEN, record, now, [], token)

    def on_registered(self, request: Register, record: ClientRecord, now: int, out: list[Effect]) -> None:
        """Process the registration of the source, or of a proxy that was admitted."""
        token = request.election
        if token is None:
            self._succeed(request.incarnation)
            self._fire(_E.RETURNED, record, now, out)
        elif self._is_ours(token):
            self._settle_in(record, now, out)
        else:
            self._fire(_E.TAKEN, record, now, out, token)

    def on_quorum(self, token: ElectionToken, held: bool, record: ClientRecord, now: int, out: list[Effect]) -> None:
        """Process that the proxy with this token got or lost a quorum; late reports are ignored."""
        if not (self.quorum and self._is_ours(token)):
            return
        self.backed = held
        if held:
            self._settle_in(record, now, out)
        else:
            self._fire(_E.LOST, record, now, out)

    def on_over(
        self, token: ElectionToken, record: ClientRecord, now: int, out: list[Effect], failed: bool = False
    ) -> None:
        """Process that the proxy with this token was overtaken, or `failed`; late reports are ignored."""
        if self._is_ours(token):
            self._fire(_E.FAILED if failed else _E.OVERTAKEN, record, now, out)

    def check(self, record: ClientRecord, now: int, out: list[Effect]) -> bool:
        """Check who is alive and do what is due; return whether the source's state is to be deleted now."""
        if not record.lifetime.active:
            self._fire(_E.SILENT, record, now, out)
        elif self.state in (ElectionState.WAITING, ElectionState.STANDING):
            self._revive(record, now, out)
        due = self.timers.pop_expired(now)
        if ElectionTimer.EXPIRE in due:
            return True
        if due:
            self._fire(_E.OVER, record, now, out)
        return False

    def forget(self, record: ClientRecord, out: list[Effect]) -> None:
        """End our proxy, because the state of the source is gone (T7)."""
        if self.ours:
            self._end(record, "the state of its source is gone", out)

    def informed(self, event: ElectionEvent, now: int, record: ClientRecord, *_: object) -> bool:
        """Return whether the stores are known with which a proxy has to register, this one among them."""
        client = record.client
        return any(entry.index == client.store_index for entry in client.stores)

    # Actions of the chart.

    def count(self, event: ElectionEvent, now: int, record: ClientRecord, *_: object) -> None:
        """Start the state lifetime from the last sign of life of the real source."""
        held = record.lifetime
        if 0 < held.lifetime_ns < STATE_FOR_EVER:
            # A proxy may have held the RegID since. Only the real source prolongs its state (P-533, T7).
            self.timers.set(ElectionTimer.EXPIRE, held.heard_at + max(held.activity_ns, held.lifetime_ns))

    def wait(self, event: ElectionEvent, now: int, record: ClientRecord, *_: object) -> None:
        """Wait, because nobody holds the RegID and another store may be first."""
        self.holder = None
        if self.may_stand:
            half = self.interval_ns // 2
            # Each store waits for a random span, so that one of them is first (P-552).
            span = self.seeded.between(self.interval_ns - half, self.interval_ns + half) << self.tries
            self.timers.set(ElectionTimer.WAIT, now + span)
        elif not record.lifetime.lifetime_ns:
            # This store runs no proxy that could keep the state without a lifetime (P-535).
            self.timers.set(ElectionTimer.EXPIRE, record.lifetime.heard_at + record.lifetime.activity_ns)

    def stand(self, event: ElectionEvent, now: int, record: ClientRecord, out: list[Effect], *_: object) -> None:
        """Start a proxy with a token of its own."""
        client = record.client
        self.holder = ElectionToken(self.seeded.below(TOKEN_VALUES), client.store_index, self.life)
        self.timers.set(ElectionTimer.WAIT, now + self.interval_ns)
        start = StartProxy(
            source_reg_id=client.reg_id,
            topic=client.topic,
            session_id=client.session_id,
            election=self.holder,
            stores=client.stores,
            group_sizes=client.group_sizes,
            pace=client.pace,
            wishes=client.wishes,
        )
        out.extend((start, Notify(ProxyStarted(client.reg_id))))

    def serve(self, *_: object) -> None:
        """Stop waiting: our proxy has all that it needs."""
        self.tries = 0
        self.timers.stop(ElectionTimer.WAIT)

    def follow(self, event: ElectionEvent, now: int, record: ClientRecord, out: object, token: ElectionToken) -> None:
        """Follow the proxy of another store."""
        self.holder = token
        self.tries = 0
        self._succeed(token.life)
        self.timers.stop(ElectionTimer.WAIT)
        if not record.lifetime.lifetime_ns:
            self.timers.stop(ElectionTimer.EXPIRE)

    def settle(self, *_: object) -> None:
        """Return the RegID to the source."""
        self.holder = None
        self.tries = 0
        self.timers.stop(ElectionTimer.WAIT)
        self.timers.stop(ElectionTimer.EXPIRE)

    def stop(self, event: ElectionEvent, now: int, record: ClientRecord, out: list[Effect], *_: object) -> None:
        """End our proxy."""
        alone = self.quorum and event is _E.OVER and not self.backed
        self._end(record, "too few stores have its state, or could be reached" if alone else _ENDINGS[event], out)

    def try_later(self, *_: object) -> None:
        """Double the next wait: the cause of the missing quorum may last, and each proxy costs its stores work."""
        if self.quorum:
            self.tries = min(self.tries + 1, MAX_DOUBLINGS)

    def _revive(self, record: ClientRecord, now: int, out: list[Effect]) -> None:
        # A keepalive or data revives the holder of the RegID, too, without a registration.
        token = record.client.election
        if token is None:
            self._fire(_E.RETURNED, record, now, out)
        elif self.state is ElectionState.WAITING and not self._has_ended(token):
            self._fire(_E.TAKEN, record, now, out, token)

    def _settle_in(self, record: ClientRecord, now: int, out: list[Effect]) -> None:
        token = record.client.election
        if token is not None and self._is_ours(token) and (self.backed or not self.quorum):
            self._fire(_E.OWN, record, now, out)

    def _is_ours(self, token: ElectionToken) -> bool:
        return self.ours and self.holder is not None and token.rank == self.holder.rank

    def _end(self, record: ClientRecord, why: str, out: list[Effect]) -> None:
        assert self.holder is not None
        self.ended = [*self.ended, self.holder][-MAX_PAST:]
        self.backed = False
        reg_id = record.client.reg_id
        out.extend((StopProxy(reg_id), Notify(ProxyEnded(reg_id, f"the proxy of source {reg_id} ends: {why}"))))

    def _fire(
        self,
        event: ElectionEvent,
        record: ClientRecord,
        now: int,
        out: list[Effect],
        token: ElectionToken | None = None,
    ) -> None:
        fire(ELECTION, self, event, event, now, record, out, token)

    def _beats(self, token: ElectionToken, other: ElectionToken) -> bool:
        return token.rank < other.rank if self.repaired else token.value < other.value

    def _has_ended(self, token: ElectionToken) -> bool:
        return any(token.rank == ours.rank for ours in self.ended)

    def _succeed(self, life: Incarnation) -> None:
        # A late token of a dead life must not count as a newer one.
        if life not in (0, self.life, *self.past):
            self.past = [past for past in (*self.past, self.life) if past][-MAX_PAST:]
            self.life = life


_S = ElectionState
_E = ElectionEvent
ELECTION = lower(
    ElectionChart,
    Election,
    ElectionState,
    ElectionEvent,
    ignore={
        _S.WATCHING: (_E.RETURNED,),
        _S.WAITING: (_E.SILENT,),
        _S.STANDING: (_E.SILENT, _E.LOST),
        _S.SERVING: (_E.OWN,),
    },
    reject={
        _S.WATCHING: (_E.OWN, _E.OVER, _E.LOST, _E.OVERTAKEN, _E.FAILED),
        _S.WAITING: (_E.OWN, _E.LOST, _E.OVERTAKEN, _E.FAILED),
        _S.SERVING: (_E.OVER,),
        _S.FOLLOWING: (_E.OWN, _E.OVER, _E.LOST, _E.OVERTAKEN, _E.FAILED),
    },
)
