"""The announcements of a source: the contents of its SRI, and when it is sent.

Several SRIs go out, at an interval, after every change of a registration (P-221). The version rises with each change,
as the version of the store concerned does (P-220, P-222). Round robin names the store whose turn it is. Otherwise the
SRI names every store that ever granted, present or not, because receivers may still find it.
"""

import attrs

from stablecast.core.machine import serial
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.messages import SourceInfo, StoreEntry
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.registration.registration_set import RegistrationSet
from stablecast.core.source.lineage import Lineage
from stablecast.core.source.parts import offers_late_join


@attrs.define
class Announcements:
    """`version` rises with each change; `left` announcements follow, the next when `due` (ns)."""

    config: SourceConfig
    version: int = 0
    left: int = 0
    due: int | None = None

    def on_change(self, now: int) -> None:
        """Announce from now on: a fact in the SRI has changed."""
        self.version += 1
        self.left = self.config.sri_maximum
        self.due = now

    def stop(self) -> None:
        """Stop announcing: another life may have registered with a store, which must not learn of this one now."""
        self.due = None

    def take_due(self, now: int) -> bool:
        """Return whether an announcement is due, and plan the next one if so."""
        if self.due is None or self.due > now:
            return False
        self.left -= 1
        self.due = now + self.config.sri_interval_ns if self.left > 0 else None
        return True

    def info(self, enrollment: RegistrationSet, lineage: Lineage, newest: int) -> SourceInfo:
        """Return the SRI as of now; `newest` is the newest number sent."""
        config = self.config
        stores = tuple(
            StoreEntry(index, config.stores[index].group, r.address, r.granted.reg_id, r.renewals)
            for index, r in enrollment.registrations.items()
            if r.granted is not None and (r.counts or enrollment.rotation is None)
        )
        return SourceInfo(
            config.incarnation,
            config.topic,
            self.version,
            serial.wire(lineage.resume_point),
            serial.wire(newest),
            config.reply_to,
            enrollment.quorums.rules.sizes,
            # A release that waits for confirmations asks for them, also where the application wants no events of them.
            config.confirmations or config.retention.unique_confirmations > 0,
            stores,
            lineage.term,
            fold(lineage.lives),
            offers_late_join(config),
            lineage.founding,
        )
