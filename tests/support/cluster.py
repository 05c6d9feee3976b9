"""One topic in the endpoint world: three stores, one source and its receivers. Each may crash and return.

The cluster records the messages that each application received and those that each source reported stable, over all
lives. `check` compares them.
"""

from typing import Any

import attrs

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import Stable, StableFlag, UnrecoverableLoss
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
from tests.support.world import Content, EndpointWorld, ReceiverNode, SourceNode, StoreNode


@attrs.define
class Application:
    """The application of a receiver. `sessions` span its crashes and the lives of the source, oldest first."""

    name: str
    wanted: bool = False
    sessions: list[ReceiverNode] = attrs.field(factory=list)

    @property
    def delivered(self) -> set[Content]:
        """All messages that the application ever received."""
        return {content for session in self.sessions for content in session.delivered}


@attrs.define
class Cluster:
    """Stores, their disks and applications by name, and the source's lives, newest last."""

    world: EndpointWorld = attrs.field(factory=EndpointWorld)
    size: int = 3
    stores: dict[str, StoreNode] = attrs.field(factory=dict)
    disks: dict[str, list[fx.Effect]] = attrs.field(factory=dict)
    lives: list[SourceNode] = attrs.field(factory=list)
    applications: dict[str, Application] = attrs.field(factory=dict)

    @classmethod
    def started(cls, receivers: int = 1, size: int = 3) -> "Cluster":
        """Return a cluster in which every node runs and the source can send."""
        cluster = cls(size=size)
        for index in range(size):
            cluster.start_store(f"store{index}")
        cluster.start_source()
        for index in range(receivers):
            cluster.start_receiver(f"receiver{index}")
        cluster.world.run_until(lambda: bool(cluster.source.machine.can_send))
        return cluster

    @property
    def source(self) -> SourceNode:
        return self.lives[-1]

    def up(self, node: Any) -> bool:
        return self.world.nodes.get(node.address) is node

    def start_store(self, name: str) -> None:
        """Start a store with the disk of its last run."""
        self.stores[name] = StoreNode.create(self.world, self.store_config(name), self.disks.get(name))

    def store_config(self, name: str) -> StoreConfig:
        """Return the configuration of a store. Tests override this."""
        return StoreConfig(name, seed=len(name))

    def crash_store(self, name: str, wipe: bool = False) -> None:
        """Crash a store; with `wipe` its disk is lost as well."""
        self.world.crash(self.stores[name])
        self.disks[name] = [] if wipe else self.stores[name].disk

    def start_source(self, **changes: Any) -> None:
        """Start a new life of the source. The running receivers join it."""
        incarnation = 100 + len(self.lives)
        stores = tuple(StoreSpec(f"store{index}") for index in range(self.size))
        config = SourceConfig(
            "topic",
            incarnation,
            "source",
            "stream",
            stores,
            GroupRules((self.size,)),
            session_id=1,
            flight_messages=100_000,
        )
        self.lives.append(SourceNode.create(self.world, attrs.evolve(config, **changes)))
        for application in self.applications.values():
            if application.wanted:
                self._open_session(application)

    def crash_source(self) -> None:
        self.world.crash(self.source)

    def start_receiver(self, name: str) -> None:
        """Start a receiver. Its session opens as soon as a source runs."""
        application = self.applications.setdefault(name, Application(name))
        application.wanted = True
        if self.lives and self.up(self.source):
            self._open_session(application, fresh=True)

    def crash_receiver(self, name: str) -> None:
        application = self.applications[name]
        application.wanted = False
        if application.sessions and self.up(application.sessions[-1]):
            self.world.crash(application.sessions[-1])

    def _open_session(self, application: Application, fresh: bool = False) -> None:
        incarnation = self.source.machine.config.incarnation
        session_id = 10 + sorted(self.applications).index(application.name)
        plain = ReceiverConfig("topic", incarnation, application.name, "source", session_id=session_id)
        config = self.receiver_config(application.name, plain)
        last = application.sessions[-1] if application.sessions else None
        node = ReceiverNode.create(self.world, config, self.source)
        if not fresh and last is not None:
            for life, ranges in last.machine.lives.consumed.items():
                for first, stop in ranges:
                    node.feed(inputs.History(life, first, stop - 1))
        application.sessions.append(node)

    def receiver_config(self, name: str, plain: ReceiverConfig) -> ReceiverConfig:
        """Return the configuration of a receiver, based on `plain`. Tests override this."""
        return plain

    def send(self, count: int) -> None:
        """Send `count` messages if the source runs and can send."""
        if self.up(self.source) and self.source.machine.can_send:
            self.source.send(count)

    def heal(self) -> None:
        """Start every node that does not run."""
        for name, store in self.stores.items():
            if not self.up(store):
                self.start_store(name)
        if not self.up(self.source):
            self.start_source()
        for name, application in self.applications.items():
            if not application.sessions or not self.up(application.sessions[-1]):
                self.start_receiver(name)

    def stable(self) -> set[Content]:
        """Return the messages that any life of the source reported stable."""
        return {
            (life.machine.config.incarnation, number)
            for life in self.lives
            for event in life.seen(Stable)
            if StableFlag.STABLE in event.flags
            for number in range(event.first, event.last + 1)
        }

    def check(self) -> None:
        """Check the guarantees.

        Every application received every stable message. Each session delivered in order and once. No stable message
        was reported lost.
        """
        stable = self.stable()
        for application in self.applications.values():
            missing = sorted(stable - application.delivered)
            assert not missing, f"{application.name} misses {missing[:10]} of {len(stable)}"
            for session in application.sessions:
                assert session.numbers == sorted(set(session.numbers)), f"{application.name}: order"
                lost = session.seen(UnrecoverableLoss)
                for event in lost:
                    gone = range(event.first, event.last + 1)
                    assert not [content for content in stable if content[1] in gone and content[0] >= 0], event
