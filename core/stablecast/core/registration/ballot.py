"""The votes about the past that a client still lacks, and its report of them.

A store that lost its memory grants, but has no vote until nobody in its group can know better (`Quorums.voters`; formal
design, 7.11). A client with enough grants and too few votes waits. The report names the stores without a vote, and the
stores that could end the wait. It is repeated when either changes.
"""

import attrs

from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import RegistrationError
from stablecast.core.registration.registration_set import RegistrationSet


@attrs.define
class Ballot:
    """`reported`: the masks of counting stores and of voters in the newest report; `why` a store has no vote."""

    why: str = "the store lost its memory and cannot tell which messages were stable"
    reported: tuple[int, int] = (0, 0)

    def review(self, enrollment: RegistrationSet, out: list[Effect]) -> None:
        """Report the missing votes, if they are all that registration waits for."""
        mask, voters = enrollment.mask, enrollment.voters
        # In the first interval the other stores may still answer.
        if mask == voters or not (enrollment.first_interval_over and enrollment.enough):
            return
        if (mask, voters) == self.reported:
            return
        self.reported = (mask, voters)
        known = enrollment.registrations
        absent = ", ".join(f"{index} [{one.address}]" for index, one in known.items() if not mask >> index & 1)
        for index, one in known.items():
            if mask >> index & 1 and not voters >> index & 1:
                text = f"{self.why}; waiting for {f'store {absent}' if absent else 'a store that the source lacks'}"
                out.append(Notify(RegistrationError(index, one.address, text)))
