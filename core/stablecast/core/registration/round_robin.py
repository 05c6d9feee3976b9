"""Round robin: one store at a time, in the order of the list (P-502..P-504). Deprecated.

The source registers with the first store only. If that store stays away, for an interval without an answer or until the
lease ends, the source drops it and tries the next, round and round. The store whose turn it is decides alone what is
stable. A message that only an earlier store has is lost (P-505). A store whose turn has come fills itself by late join
from what the source retains (P-503).
"""

import attrs

from stablecast.core.protocol.effects import Effect
from stablecast.core.protocol.quorum import GroupRules, Intragroup, Quorums
from stablecast.core.registration.store_registration import Registration, RegistrationState

ONE_STORE = GroupRules((1,), Intragroup.ALL_ACTIVE)
"""One store is enough, and the one that is registered must have it."""


@attrs.define
class Rotation:
    """`turn` is the index of the store whose turn it is."""

    turn: int = 0

    @staticmethod
    def quorums(stores: int) -> Quorums:
        """Return the rules over this many stores."""
        return Quorums.of(ONE_STORE, [0] * stores)

    def review(self, registrations: dict[int, Registration], now: int, out: list[Effect]) -> None:
        """Pass the turn on if its store stays away, and ask the store whose turn it is."""
        order = [index for index, registration in sorted(registrations.items()) if registration.address]
        current = registrations[self.turn]
        if order and (current.failing or not current.address):
            following = next((index for index in order if index > self.turn), order[0])
            if following != self.turn:
                current.park(now, out)
                self.turn = following
        chosen = registrations[self.turn]
        if chosen.address and chosen.state is RegistrationState.IDLE:
            chosen.start(chosen.request.reg_id, now, out)
