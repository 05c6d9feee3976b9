"""The proxy elections of one store: one for each source that wishes for a proxy (P-545, P-550).

What a store does with them, and when:

* a source is new, or known from before a restart: `enter`. If it is true, the `Lifetime` of the source tells who is
  active and no more: it is the election that knows how long the state is kept;
* a source asks to register: `admits`, before anything changes; and once its record is renewed, `on_registered`;
* whoever runs our proxy tells that it has a quorum, or lost it: `on_quorum`;
* at every check, after the lifetimes: `check`, which returns what is to be deleted;
* a source is deleted or deregistered: `forget`.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import ProxyQuorum
from stablecast.core.protocol.messages import Incarnation, Register, Role
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.proxy_election import MAX_PAST, Election, ElectionState


@attrs.define
class Elections:
    """The elections of one store, by source RegID; sources that wish for no proxy have none."""

    config: StoreConfig
    seeded: Seeded
    running: dict[int, Election] = attrs.field(factory=dict)

    def enter(self, record: ClientRecord, now: int) -> bool:
        """A client is new here, or known from before a restart; returns whether there is an election for it."""
        client = record.client
        token = client.election
        if client.role is not Role.SOURCE or not (client.wants_proxy or token):
            return False
        election = Election(
            seeded=Seeded(self.seeded.next_u64()),
            may_stand=self.config.allow_proxy and client.wants_proxy,
            repaired=Repair.ELECTION in self.config.repairs,
            interval_ns=self.config.proxy_interval_ns,
            quorum=self.config.proxy_quorum,
            life=client.incarnation if token is None else token.life,
        )
        election.past = [life for life, _ in client.lives if life != election.life][-MAX_PAST:]
        self.running[client.reg_id] = election
        if token is not None:
            election.resume(token, record, now)
        return True

    def admits(self, request: Register, record: ClientRecord | None) -> bool | None:
        """Whether a source may register with the RegID of `record`; None: the rule of all clients decides (T6)."""
        election = None if record is None else self.running.get(record.client.reg_id)
        token = request.election
        if token is None:
            back = election is not None and election.state is not ElectionState.WATCHING
            return True if back else None
        if election is None:
            return record is None and not self.config.proxy_quorum
        return election.admits(token)

    def on_registered(self, request: Register, record: ClientRecord, now: int, out: list[Effect]) -> None:
        """A source or proxy that was admitted has registered; its record says so already."""
        election = self.running.get(record.client.reg_id)
        if election is not None:
            election.on_registered(request, record, now, out)

    def on_quorum(self, event: ProxyQuorum, records: Mapping[int, ClientRecord], now: int, out: list[Effect]) -> None:
        """A proxy of ours has a quorum, or has lost it."""
        election = self.running.get(event.source_reg_id)
        if election is not None:
            election.on_quorum(event.election, event.held, records[event.source_reg_id], now, out)

    def forget(self, record: ClientRecord, out: list[Effect]) -> None:
        """A client is forgotten."""
        election = self.running.pop(record.client.reg_id, None)
        if election is not None:
            election.forget(record, out)

    def check(self, records: Mapping[int, ClientRecord], now: int, out: list[Effect]) -> list[ClientRecord]:
        """Look at every election, after the lifetimes; returns the sources whose state is to be deleted now."""
        sources = [records[reg_id] for reg_id in self.running]
        return [record for record in sources if self.running[record.client.reg_id].check(record, now, out)]

    def check_invariants(self) -> None:
        """What must hold between inputs (used by tests)."""
        for election in self.running.values():
            election.check_invariants()

    def abstract(self) -> tuple[tuple[int, tuple[str, tuple[int, int] | None, Incarnation]], ...]:
        """Each election, by RegID."""
        return tuple((reg_id, election.abstract()) for reg_id, election in sorted(self.running.items()))
