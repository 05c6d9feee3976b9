"""The proxy elections of one store: one for each source that asks for a proxy (P-545, P-550).

The registry calls `enter` for a new or restored source, `admits` before a registration changes anything, and
`on_registered` once the record is renewed. A proxy's driver reports its quorum and its end (`on_proxy`). `check`
runs after the lifetimes and returns sources to delete; `forget` follows every deletion. Where `enter` returned True,
the `Lifetime` of the source only shows who is active: the election decides how long the state is kept.
"""

from collections.abc import Mapping

import attrs

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.inputs import ProxyOver, ProxyQuorum
from stablecast.core.protocol.messages import Register, Role
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store.clients import ClientRecord
from stablecast.core.store.proxy_election import MAX_PAST, Election, ElectionState


@attrs.define
class Elections:
    """The elections of one store, by source RegID; sources that ask for no proxy have none."""

    config: StoreConfig
    seeded: Seeded
    running: dict[int, Election] = attrs.field(factory=dict)

    def enter(self, record: ClientRecord, now: int) -> bool:
        """Begin the election for a client that is new here or restored; return whether it has one."""
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
        """Return whether a source may have the RegID of `record`; None: the rule of all clients decides (T6)."""
        election = None if record is None else self.running.get(record.client.reg_id)
        token = request.election
        if token is None:
            back = election is not None and election.state is not ElectionState.WATCHING
            return True if back else None
        if election is None:
            return record is None and not self.config.proxy_quorum
        return election.admits(token)

    def on_registered(self, request: Register, record: ClientRecord, now: int, out: list[Effect]) -> None:
        """Process the registration of an admitted source or proxy, after its record was renewed."""
        election = self.running.get(record.client.reg_id)
        if election is not None:
            election.on_registered(request, record, now, out)

    def on_proxy(
        self, event: ProxyQuorum | ProxyOver, records: Mapping[int, ClientRecord], now: int, out: list[Effect]
    ) -> None:
        """Process that our proxy got or lost a quorum, or is over."""
        election = self.running.get(event.source_reg_id)
        if election is None:
            return
        record = records[event.source_reg_id]
        if isinstance(event, ProxyOver):
            election.on_over(event.election, record, now, out, event.failed)
        else:
            election.on_quorum(event.election, event.held, record, now, out)

    def forget(self, record: ClientRecord, out: list[Effect]) -> None:
        election = self.running.pop(record.client.reg_id, None)
        if election is not None:
            election.forget(record, out)

    def check(self, records: Mapping[int, ClientRecord], now: int, out: list[Effect]) -> list[ClientRecord]:
        """Check every election, after the lifetimes; return the sources whose state is to be deleted now."""
        sources = [records[reg_id] for reg_id in self.running]
        return [record for record in sources if self.running[record.client.reg_id].check(record, now, out)]
