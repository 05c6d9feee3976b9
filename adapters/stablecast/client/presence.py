"""The announcements of the members of a group: a topic without stores, of which each member is a source and a receiver.

An announcement is a JSON text with the member's id and its number of shares. It is a hint: a lost, late or forged one
may delay a share or make it move, and never gives it to two members.
"""

import json
from collections.abc import Callable
from typing import Protocol, Self

import attrs

from stablecast.client.message import Message
from stablecast.client.receiver import Receiver
from stablecast.client.source import Source
from stablecast.core.protocol.events import EndOfSource, Event
from stablecast.core.protocol.settings import SourceConfig
from stablecast.core.sharing.member import Announce, Heard, Left, MemberConfig, MemberInput
from stablecast.text.json_text import from_json

PREFIX = "stablecast.group"
"""The begin of the topics on which members announce themselves."""

MAX_PLACES = 1024
"""Places of members that are remembered, so that the end of a member's stream names it."""


def presence_topic(group: str, topic: str) -> str:
    """Return the topic of the announcements of a group that shares a topic.

    >>> presence_topic("billing", "orders")
    'stablecast.group.7.billing.orders'
    """
    return f"{PREFIX}.{len(group)}.{group}.{topic}"


def announcement(member: MemberConfig, *, leaving: bool) -> bytes:
    return json.dumps({"member": f"{member.member:016x}", "shares": member.shares, "leaving": leaving}).encode()


def decoded(payload: bytes) -> Heard | Left | None:
    """Return what an announcement says; None if it is none."""
    try:
        text = from_json(payload)
        member, shares, leaving = int(text["member"], 16), text["shares"], text["leaving"]
    except (ValueError, TypeError, KeyError):
        return None
    if not (0 <= member < 1 << 64 and isinstance(shares, int) and isinstance(leaving, bool)):
        return None
    return Left(member) if leaving else Heard(member, shares)


class PresenceContext(Protocol):
    async def host(self, config: SourceConfig) -> Source: ...

    def receiver(
        self,
        topic: str,
        *,
        session_id: int,
        on_event: Callable[[Event], None],
        on_message: Callable[[Message], object],
        options: dict[str, int],
    ) -> Receiver:
        """Make a receiver of the announcements, which gets each one by its callback."""


@attrs.define(eq=False)
class Presence:
    """The announcements that one member sends and receives."""

    _member: MemberConfig
    _on_news: Callable[[MemberInput], None]
    _source: Source
    _receiver: Receiver = attrs.field(init=False)
    _places: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    async def open(
        cls, context: PresenceContext, topic: str, member: MemberConfig, on_news: Callable[[MemberInput], None]
    ) -> Self:
        """Begin to announce a member; `on_news` gets what the others announce."""
        source = await context.host(SourceConfig(topic, 0, "", ""))
        presence = cls(member, on_news, source)
        presence._receiver = context.receiver(
            topic,
            session_id=0,
            on_event=presence._on_event,
            on_message=presence._on_message,
            options={"ume_use_store": 0, "use_late_join": 0},
        )
        return presence

    def announce(self, effect: Announce) -> None:
        """Send an announcement to the members that listen now."""
        self._source.try_send(announcement(self._member, leaving=effect.leaving))

    async def close(self) -> None:
        await self._receiver.close()
        await self._source.close()

    def _on_message(self, message: Message) -> None:
        news = decoded(message.payload)
        if news is None or news.member == self._member.member:
            return
        self._places.pop(message.source, None)
        self._places[message.source] = news.member
        if len(self._places) > MAX_PLACES:
            del self._places[next(iter(self._places))]
        self._on_news(news)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, EndOfSource) and (member := self._places.pop(event.place, None)) is not None:
            self._on_news(Left(member))
