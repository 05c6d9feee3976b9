"""Where a receiver registers: with the stores that the source's SRI names, and where something changed there.

An SRI with a higher overall version may bring stores in; a store whose own version rose has the source's registration
anew and is asked to register us again, the others are left alone (T21, P-224). A store that calls the source by another
RegID than before is a new store to us.
"""

import attrs

from stablecast.core.effects import AskRegId, Effect, Notify
from stablecast.core.enrollment import Enrollment
from stablecast.core.events import RegistrationChange
from stablecast.core.messages import Role, SourceInfo, StoreEntry
from stablecast.core.quorum import Group
from stablecast.core.registration import Registration, RegistrationState
from stablecast.core.settings import ReceiverConfig, register_request


@attrs.define
class Enlistment:
    """A receiver's registrations, and the version of each store when it was asked last."""

    config: ReceiverConfig
    enrollment: Enrollment = attrs.field(factory=lambda: Enrollment(Group(0)))
    versions: dict[int, int] = attrs.field(factory=dict)

    def begin(self, info: SourceInfo, now: int, out: list[Effect]) -> None:
        """The first SRI: ask every store that it names."""
        self.enrollment.group = Group(info.group_size)
        self.enrollment.open(now + self.config.times.interval_ns)
        self.on_info(info, now, out)

    def on_info(self, info: SourceInfo, now: int, out: list[Effect]) -> None:
        """Register with stores that are new, and again where the store's own version rose (T21)."""
        changed = []
        for entry in info.stores:
            registration = self.enrollment.registrations.get(entry.index)
            if registration is None or registration.request.source_reg_id != entry.source_reg_id:
                self._add(entry, now, out)
            elif self.versions[entry.index] < entry.version:
                registration.renew(now, out)
                changed.append(f"store {entry.index} [{entry.address}]")
            self.versions[entry.index] = entry.version
        if changed:
            out.append(Notify(RegistrationChange(f"registering again with {', '.join(changed)}")))

    def on_reg_id(self, store_index: int, reg_id: int, now: int, out: list[Effect]) -> None:
        """The application chose a RegID; without effect unless the store was asked about."""
        registration = self.enrollment.registrations.get(store_index)
        if registration is not None and registration.state is RegistrationState.IDLE:
            registration.start(reg_id, now, out)

    def _add(self, entry: StoreEntry, now: int, out: list[Effect]) -> None:
        request = register_request(
            Role.RECEIVER, entry.index, self.config, reg_id=0, source_reg_id=entry.source_reg_id, transport=""
        )
        registration = Registration(request, entry.address, self.config.times)
        self.enrollment.registrations[entry.index] = registration
        if self.config.session_id:
            registration.start(0, now, out)
        else:
            out.append(AskRegId(entry.index, entry.address, entry.source_reg_id))
