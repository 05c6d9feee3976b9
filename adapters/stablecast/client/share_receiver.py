"""The receiver of one share: a durable receiver at a request port of its own.

Stores let one receiver at a time hold a session id, and know the holder by its address. So a share has an address for
itself, and closing it releases this share and no other. The messages of other shares are acknowledged without the
application, and never confirmed: this share has nothing to do with them, and their own shares have receivers of their
own at the stores.
"""

from collections.abc import Callable
from typing import Protocol

from stablecast.client.batch import Batch
from stablecast.client.delivery import Delivery
from stablecast.client.range_inquiry import RangeRoutes
from stablecast.client.receiver import Receiver, ReceiverContext
from stablecast.client.request_inputs import RequestInputs
from stablecast.client.session import ClientSession
from stablecast.client.shared_streams import SharedStreams
from stablecast.core.errors import MisuseError
from stablecast.core.machine.serial import FOREVER
from stablecast.core.protocol.events import Event, RegistrationError
from stablecast.core.protocol.messages import SourceInfo
from stablecast.core.protocol.settings import ReceiverConfig
from stablecast.runtime import address, machine, ports
from stablecast.runtime.request_port import RequestPort

HELD = "holds it"
"""The words of a refusal that another member's hold causes; members wait for each other, so it is no news."""


class ShareContext(ReceiverContext, Protocol):
    """The services of the member's context that its shares use."""

    interface: str
    reads: RangeRoutes


class SharePlace:
    """The context of one share's receiver: that of the member, with a request port for this share alone."""

    def __init__(self, context: ShareContext, streams: SharedStreams, listening: machine.Socket) -> None:
        """Use a listening socket, which the place owns from now on."""
        self.request_address = address.join(context.interface, listening.getsockname()[1])
        self.pool = context.pool
        self.trace = context.trace
        self.oddities = context.oddities
        self.transports = streams
        self.lives: dict[int, Receiver] = {}
        self.memories = context.memories
        self.times = context.times
        self.spans = None  # The delivery of the member makes them.
        self.store_name = context.store_name
        self.lost_source = context.lost_source
        self.met_source = context.met_source
        inputs = RequestInputs({}, self.lives, self.oddities, context.reads, self.pool.routing)
        self.port = RequestPort(listening, inputs.on_items)

    async def move(self, interface: str, within: tuple[int, int]) -> None:
        """Listen at another address of this host, at the same port or at one of a range. Raises PortError."""
        listening = ports.listen_in_range(interface, within)
        self.request_address = address.join(interface, listening.getsockname()[1])
        await self.port.move(listening)

    def forget_receiver(self, receiver: Receiver) -> None:
        """Do nothing: the member forgets its shares."""


class ShareReceiver(Receiver):
    """The receiver of one share.

    Attributes:
        number: The share.
    """

    def __init__(
        self,
        place: SharePlace,
        config: ReceiverConfig,
        number: int,
        delivery: Delivery,
        shares_of: Callable[[Batch], list[int]],
        may_give: Callable[[int, bool], bool],
        on_event: Callable[[Event], None] | None,
    ) -> None:
        """Receive the messages of share `number`.

        `shares_of` returns the share of each message of a batch, and `may_give` whether the member has a share, by its
        number and whether it is leased.
        """
        super().__init__(place, config, on_event, None, None, delivery=delivery)  # type: ignore[arg-type]
        self.place = place
        self.number = number
        self.deliver = self._divide
        self._give = delivery.deliver
        self._shares_of = shares_of
        self._may_give = may_give

    def on_notify(self, event: Event, source: str = "") -> None:
        """Report an event, unless it says that another member has this share."""
        if not (isinstance(event, RegistrationError) and HELD in event.text):
            super().on_notify(event, source)

    # ------------------------------------------------------------------------------------------------- states, as asked

    @property
    def sessions(self) -> list[ClientSession]:
        """Return the sessions with all lives of all sources."""
        return self.every_session

    @property
    def granted(self) -> bool:
        """Return whether a session has begun to deliver."""
        return any(session.begun for session in self.sessions)

    @property
    def lost(self) -> bool:
        """Return whether another member may have this share at the stores of a source."""
        return any(session.begun and not session.leased for session in self.sessions)

    @property
    def contested(self) -> bool:
        """Return whether another member is registered at some stores of a source, and neither at enough."""
        return any(session.contested for session in self.sessions)

    @property
    def busy(self) -> bool:
        """Return whether the application has messages of this share that it has not settled."""
        return any(self.owns(batch.owner) for batch, _, _ in self.inbox.unconsumed())

    def record(self) -> bool:
        """Return whether enough stores of each source know what was consumed; ask those that do not show it."""
        asked = [session.record() for session in self.sessions if session.begun and session.leased]
        return all(asked)

    # --------------------------------------------------------------------------------------------------------- messages

    def drain(self) -> None:
        """Give the application no further message, and take back those that it was not handed."""
        for batch, first, stop in self.inbox.drop(lambda batch: (0, FOREVER) if self.owns(batch.owner) else None):
            batch.owner.dropped(stop - first)

    def _divide(self, batch: Batch) -> None:
        """Give the messages of this share to the application, and consume the others."""
        owner = batch.owner
        assert isinstance(owner, ClientSession)
        # The stores forget a share on request, and its messages still come.
        if not self._may_give(self.number, owner.leased or owner.withdrawn):
            for first, stop in batch.spans(0, batch.count):
                owner.dropped(stop - first)
            return
        number, begin, shares = self.number, 0, self._shares_of(batch)
        while begin < batch.count:
            mine, end = shares[begin] == number, begin + 1
            while end < batch.count and (shares[end] == number) is mine:
                end += 1
            if mine:
                self._give(batch if end - begin == batch.count else batch.part(begin, end))
            else:
                for first, stop in batch.spans(begin, end):
                    owner.pass_over(first, stop - 1)
            begin = end

    def _accepts(self, info: SourceInfo) -> bool:
        if why := unshareable(info):
            error = MisuseError(why)
            self._delivery.reader.fail(error, error)
        return not why


def unshareable(info: SourceInfo) -> str:
    """Return the reason why the messages of a source cannot be shared; empty if they can."""
    if not info.stores:
        return f"a source of '{info.topic}' has no stores: a group needs them, because they keep who has which share"
    if len(info.group_sizes) > 1:
        return (
            f"a source of '{info.topic}' has {len(info.group_sizes)} groups of stores: work sharing needs one, because "
            "two groups could give a share to two members"
        )
    return ""
