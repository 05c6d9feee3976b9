"""One store in a proxy election: the machine, the record that a store keeps beside it, words for what happens."""

from typing import Any

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.effects import Client, Effect
from stablecast.core.protocol.messages import ElectionToken, Role, StoreEntry, Wishes
from stablecast.core.store.client_lifetime import Lifetime
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.proxy_election import TOKEN_VALUES, Election, ElectionState
from tests.core.samples import LIFE, SECOND, drain, register
from tests.support.invariants import check_invariants

ACTIVITY = 10 * SECOND
INTERVAL = 5 * SECOND
LOWEST = ElectionToken(0, 9, LIFE)
HIGHEST = ElectionToken(TOKEN_VALUES, 9, LIFE)

CLIENT = Client(
    role=Role.SOURCE,
    reg_id=50,
    store_index=0,
    topic="topic",
    session_id=3,
    incarnation=LIFE,
    source_reg_id=0,
    reply_to="client:1",
    transport="stream:1",
    activity_timeout_ms=0,
    state_lifetime_ms=0,
    acknowledged=-1,
    lives=(),
    wants_proxy=True,
    stores=(StoreEntry(0, 0, "store0:1", 50, 1),),
    group_sizes=(1,),
    wishes=Wishes(flight_bytes=9),
)


def lifetime(lifetime_ns: int = 0) -> Lifetime:
    """Heard at 0; the election decides about its state."""
    return Lifetime(ACTIVITY, lifetime_ns, heard_at=0)


def fall_silent(record: ClientRecord, now: int) -> None:
    """Apply the activity timeout, as a store does before it checks its elections."""
    held = record.lifetime
    if held.active and now - held.heard_at >= held.activity_ns:
        held.on_gone(now)


class Station:
    """One store's election, with the source's record, which the store renews at each registration."""

    def __init__(self, seed: int = 1, index: int = 0, lifetime_ns: int = 0, **changes: Any) -> None:
        fields = {"may_stand": True, "repaired": True, "interval_ns": INTERVAL, "life": LIFE}
        self.machine = Election(seeded=Seeded(seed), **{**fields, **changes})
        stores = (StoreEntry(index, 0, f"store{index}:1", 50, 1),)
        self.record = ClientRecord(attrs.evolve(CLIENT, store_index=index, stores=stores), lifetime(lifetime_ns))
        self.out: list[Effect] = []

    @property
    def state(self) -> ElectionState:
        return self.machine.state

    def check(self, now: int) -> bool:
        fall_silent(self.record, now)
        due = self.machine.check(self.record, now, self.out)
        check_invariants(self.machine)
        return due

    def proxy(self, token: ElectionToken, now: int) -> bool:
        """A proxy asks to register; returns whether it may, and then it has."""
        if not self.machine.admits(token):
            return False
        self._renew(token, now)
        return True

    def tell(self, token: ElectionToken, now: int, held: bool = True) -> None:
        """Report the quorum's data to the machine, as the host of our proxy does."""
        self.machine.on_quorum(token, held, self.record, now, self.out)
        check_invariants(self.machine)

    def over(self, token: ElectionToken, now: int, *, failed: bool = False) -> None:
        """Report that our proxy is over, as its host does."""
        self.machine.on_over(token, self.record, now, self.out, failed)
        check_invariants(self.machine)

    def source(self, now: int, life: int = LIFE) -> None:
        self._renew(None, now, life)

    def _renew(self, token: ElectionToken | None, now: int, life: int = LIFE) -> None:
        self.record.client = attrs.evolve(self.record.client, election=token)
        self.record.lifetime.on_heard(now)
        self.machine.on_registered(register(election=token, incarnation=life), self.record, now, self.out)
        check_invariants(self.machine)

    def resume(self, token: ElectionToken, now: int = 0) -> None:
        """The store has restarted; the proxy with this token had the RegID."""
        self.record.client = attrs.evolve(self.record.client, election=token)
        self.machine.resume(token, self.record, now)
        check_invariants(self.machine)

    def silent(self, now: int = ACTIVITY) -> int:
        """Silence the holder of the RegID; return the time of our turn."""
        self.check(now)
        assert self.state is ElectionState.WAITING
        turn = self.machine.timers.next()
        return now if turn is None else turn

    def stand(self) -> tuple[ElectionToken, int]:
        """The source falls silent and our turn comes: the token, and when."""
        now = self.silent()
        self.check(now)
        assert self.state is ElectionState.STANDING
        assert self.machine.holder is not None
        return self.machine.holder, now

    def serve(self) -> tuple[ElectionToken, int]:
        """As `stand`, and our proxy registers here."""
        token, now = self.stand()
        assert self.proxy(token, now)
        assert self.state is ElectionState.SERVING
        drain(self.out)
        return token, now
