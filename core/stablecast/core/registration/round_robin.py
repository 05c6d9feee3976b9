"""Round robin: one store at a time, in the order of the list (P-502..P-504). Deprecated.

The source registers with the first store only. When that stays away, for a whole interval without an answer or until
the lease is over, it has nothing to do with it any more and tries the next, round and round. The store whose turn it is
decides alone what is stable, and a message that only an earlier one has is gone with it (P-505). A store whose turn has
come fills itself from what the source retains, by late join (P-503).
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
        """The rules over this many stores."""
        return Quorums.of(ONE_STORE, [0] * stores)

    def review(self, registrations: dict[int, Registration], now: int, out: list[Effect]) -> None:
        """It is the next store's turn if this one stays away; ask the store whose turn it is."""
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
