"""A receiver's knowledge of its source, and its requests to it.

The SRI with the highest version is the newest (P-223). An older one that comes late is ignored; one of the same version
only shows how far the source is. Two requests go by unicast, again at an interval while no answer comes, for a limited
number of times:

* for the first SRI (P-227). Sources put theirs on the stream for a while, so an interval passes before the first
  request;
* for the range that a source without stores retransmits to late receivers (P-411). Nobody sends that unasked, so it is
  requested at once.
"""

from enum import IntEnum

import attrs

from stablecast.core.protocol.effects import Effect, Notify, Send
from stablecast.core.protocol.events import Oddity
from stablecast.core.protocol.messages import MAX_STORES, LateJoinRequest, SourceInfo, SourceInfoRequest
from stablecast.core.protocol.settings import ReceiverConfig


class SourceNews(IntEnum):
    """The novelty of an SRI: none for us, the first one, one of the known version, a newer one."""

    NOTHING = 0
    FIRST = 1
    SAME = 2
    NEWER = 3


@attrs.define
class SourceContact:
    """The newest SRI, and the open request: `due` is when to send it (again), in ns. `gone`: the process has ended."""

    config: ReceiverConfig
    info: SourceInfo | None = None
    asked: int = 0
    due: int | None = None
    gone: bool = False

    @property
    def source(self) -> SourceInfo:
        """The newest SRI; only after the first."""
        assert self.info is not None
        return self.info

    @property
    def persistent(self) -> bool:
        """True if the source has stores to use."""
        return self.config.use_store and bool(self.source.stores)

    @property
    def recovers(self) -> bool:
        """True if both sides allow late join, without which nothing is recovered (P-411)."""
        return self.config.late_join and self.source.late_join

    def start(self, now: int, *, waiting: bool) -> None:
        """Plan the first request where the session waits for an SRI, and knows whom to ask."""
        if waiting and self.config.source_request:
            self.begin(now + self.config.sri_request_interval_ns)

    def begin(self, at: int) -> None:
        """Open a request, to be sent from `at` (ns) on."""
        self.asked, self.due = 0, at

    def stop(self) -> None:
        """Close the request: it was answered, or nobody needs the answer."""
        self.due = None

    def expired(self, now: int) -> bool:
        """Return whether it is time to send the request."""
        return self.due is not None and self.due <= now

    def ask_info(self, now: int, out: list[Effect]) -> str:
        """Request the SRI; return a sentence if that was in vain often enough."""
        to = self.config.source_request
        if self._may_ask(now):
            out.append(Send(to, SourceInfoRequest(self.config.incarnation)))
            return ""
        return f"no SRI after {self.asked} requests to {to}"

    def ask_range(self, now: int, out: list[Effect]) -> str:
        """Request the retained range; return a sentence if that was in vain often enough."""
        to = self.source.request
        if self._may_ask(now):
            out.append(Send(to, LateJoinRequest(self.config.incarnation, self.asked, self.config.reply_to)))
            return ""
        return f"no answer to {self.asked} late join requests to {to}; only new messages are delivered"

    def on_info(self, info: SourceInfo, out: list[Effect]) -> SourceNews:
        """Process an SRI, and return its novelty."""
        known = self.info
        if known is not None and info.version < known.version:
            return SourceNews.NOTHING
        # A hostile SRI could name an index twice, or a huge one, which would become a mask of that many bits.
        indices = {entry.index for entry in info.stores}
        if len(indices) < len(info.stores) or not all(0 <= index < MAX_STORES for index in indices):
            text = f"the source names {len(info.stores)} stores, {len(indices)} of them different"
            out.append(Notify(Oddity("wild-info", text)))
            return SourceNews.NOTHING
        self.info = info
        if known is None:
            self.stop()
            return SourceNews.FIRST
        return SourceNews.SAME if info.version == known.version else SourceNews.NEWER

    def _may_ask(self, now: int) -> bool:
        if self.asked == self.config.sri_request_maximum:
            self.stop()
            return False
        self.asked += 1
        self.due = now + self.config.sri_request_interval_ns
        return True
