"""A topic in the world: three stores, one source and its receivers, any of which may crash and return.

What the application of each receiver was handed is kept over all its lives, and so is what any source reported stable:
`check` compares the two.
"""

from typing import Any

import attrs

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.events import Stable, StableFlag, UnrecoverableLoss
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import ReceiverConfig, SourceConfig, StoreConfig, StoreSpec
from tests.support.world import Content, ReceiverNode, SourceNode, StoreNode, World


@attrs.define
class Application:
    """A receiver's application: its sessions, oldest first, over crashes and over lives of the source."""

    name: str
    wanted: bool = False
    sessions: list[ReceiverNode] = attrs.field(factory=list)

    @property
    def delivered(self) -> set[Content]:
        """Everything it was ever handed."""
        return {content for session in self.sessions for content in session.delivered}


@attrs.define
class Cluster:
    """Stores and applications by name; the source's lives, newest last."""

    world: World = attrs.field(factory=World)
    size: int = 3
    stores: dict[str, StoreNode] = attrs.field(factory=dict)
    disks: dict[str, list[fx.Effect]] = attrs.field(factory=dict)
    lives: list[SourceNode] = attrs.field(factory=list)
    applications: dict[str, Application] = attrs.field(factory=dict)

    @classmethod
    def started(cls, receivers: int = 1, size: int = 3) -> "Cluster":
        """Everybody is up, the source may send."""
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
        """The newest life of the source."""
        return self.lives[-1]

    def up(self, node: Any) -> bool:
        """Whether this node runs."""
        return self.world.nodes.get(node.address) is node

    def start_store(self, name: str) -> None:
        """A store starts, with the disk that it left."""
        self.stores[name] = StoreNode.create(self.world, self.store_config(name), self.disks.get(name))

    def store_config(self, name: str) -> StoreConfig:
        """What a store of this cluster is told."""
        return StoreConfig(name, seed=len(name))

    def crash_store(self, name: str, wipe: bool = False) -> None:
        """A store crashes; `wipe`: its disk is lost as well."""
        self.world.crash(self.stores[name])
        self.disks[name] = [] if wipe else self.stores[name].disk

    def start_source(self, **changes: Any) -> None:
        """A new life of the source; the receivers that run join it."""
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
        """The source's process ends."""
        self.world.crash(self.source)

    def start_receiver(self, name: str) -> None:
        """A receiver's process starts; its session opens when there is a source."""
        application = self.applications.setdefault(name, Application(name))
        application.wanted = True
        if self.lives and self.up(self.source):
            self._open_session(application, fresh=True)

    def crash_receiver(self, name: str) -> None:
        """A receiver's process ends."""
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
        """What a receiver of this cluster is told."""
        return plain

    def send(self, count: int) -> None:
        """The source sends, if it may."""
        if self.up(self.source) and self.source.machine.can_send:
            self.source.send(count)

    def heal(self) -> None:
        """Whoever is down returns."""
        for name, store in self.stores.items():
            if not self.up(store):
                self.start_store(name)
        if not self.up(self.source):
            self.start_source()
        for name, application in self.applications.items():
            if not application.sessions or not self.up(application.sessions[-1]):
                self.start_receiver(name)

    def stable(self) -> set[Content]:
        """What any life of the source reported stable."""
        return {
            (life.machine.config.incarnation, number)
            for life in self.lives
            for event in life.seen(Stable)
            if StableFlag.STABLE in event.flags
            for number in range(event.first, event.last + 1)
        }

    def check(self) -> None:
        """Nothing stable is missing; in order and once within each session; nothing stable was called lost."""
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
