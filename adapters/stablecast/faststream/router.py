"""Routers of a broker of FastStream: groups of subscribers and publishers."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from faststream._internal.broker.router import ArgsContainer, BrokerRouter, SubscriberRoute
from faststream._internal.constants import EMPTY
from faststream.middlewares import AckPolicy

from stablecast.client import Message
from stablecast.faststream.connection import StablecastBrokerConfig
from stablecast.faststream.registrator import StablecastRegistrator

if TYPE_CHECKING:
    from fast_depends.dependencies import Dependant
    from faststream._internal.basic_types import SendableMessage
    from faststream._internal.types import BrokerMiddleware, CustomCallable


class StablecastPublisher(ArgsContainer):
    """A publisher of a route, made later."""

    def __init__(self, topic: str, **arguments: Any) -> None:
        """Keep the arguments of `StablecastBroker.publisher`."""
        super().__init__(topic, **arguments)


class StablecastRoute(SubscriberRoute):
    """A handler with its topic, for `StablecastRouter(handlers=[...])`."""

    def __init__(
        self,
        call: "Callable[..., SendableMessage] | Callable[..., Awaitable[SendableMessage]]",
        topic: str = "",
        publishers: Iterable[StablecastPublisher] = (),
        **arguments: Any,
    ) -> None:
        """Keep the arguments of `StablecastBroker.subscriber`."""
        super().__init__(call, topic, publishers=publishers, **arguments)


class StablecastRouter(StablecastRegistrator, BrokerRouter[Message, StablecastBrokerConfig]):
    """A group of subscribers and publishers, which a broker or another router includes."""

    def __init__(  # noqa: PLR0913 - each is a choice of its own
        self,
        prefix: str = "",
        handlers: Iterable[StablecastRoute] = (),
        *,
        dependencies: Sequence["Dependant"] = (),
        middlewares: Sequence["BrokerMiddleware[Any, Any]"] = (),
        routers: Iterable[StablecastRegistrator] = (),
        parser: "CustomCallable | None" = None,
        decoder: "CustomCallable | None" = None,
        ack_policy: AckPolicy = EMPTY,
        include_in_schema: bool | None = None,
    ) -> None:
        """Make a router whose topics begin with `prefix`."""
        super().__init__(
            handlers=handlers,
            config=StablecastBrokerConfig(
                prefix=prefix,
                broker_middlewares=middlewares,
                broker_dependencies=dependencies,
                broker_parser=parser,
                broker_decoder=decoder,
                ack_policy=ack_policy,
                include_in_schema=include_in_schema,
            ),
            routers=routers,
        )
