"""A small deterministic world for endpoint tests: virtual time, ordered links, disks that lose what is not synced.

`tests.support.nodes` has the world, its sources and its receivers; here are the stores.
"""

from collections import deque

import attrs

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import inputs
from stablecast.core.protocol.messages import StableAck
from stablecast.core.protocol.settings import RepositoryType, StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.store.proxy import proxy_config
from tests.support.disk import change, replay
from tests.support.nodes import LINK_NS, Content, Joiner, Node, ReceiverNode, SourceNode, World

SYNC_NS = MILLISECOND

PROXY_LIFE = 1 << 40
"""The lives of proxies are above this."""


@attrs.define(eq=False)
class StoreNode(Joiner):
    """A store and its disk. `disk` is what survives a crash: records in the order written.

    `contents` is what can be read from the disk, `durable` the part of it that is synced, `memory` what is held there:
    incarnations by (RegID, number). `proxies` stand in for sources, by RegID.
    """

    disk: list[fx.Effect] = attrs.field(factory=list)
    contents: dict[tuple[int, int], int] = attrs.field(factory=dict)
    durable: dict[tuple[int, int], int] = attrs.field(factory=dict)
    memory: dict[tuple[int, int], int] = attrs.field(factory=dict)
    proxies: dict[int, SourceNode] = attrs.field(factory=dict)
    unsynced: deque[fx.StoreEffect] = attrs.field(factory=deque)
    syncing: bool = False

    @classmethod
    def create(cls, world: World, config: StoreConfig, disk: list[fx.Effect] | None = None) -> "StoreNode":
        """A store, with the disk that an earlier one left; an empty one was lost, None is that of a new store."""
        node = cls(world, config.address, StoreEndpoint.create(config))
        if disk is not None:
            node.disk = list(disk)
            for record in disk:
                change(node.contents, record)
                change(node.durable, record)
            node.machine.recover(*replay(disk), world.now, memory=bool(disk))
        node.join()
        return node

    def perform(self, effect: fx.Effect) -> None:
        """Whatever is acknowledged must be synced, unless the source agreed to less."""
        match effect:
            case fx.Send(message=StableAck(nack=False) as ack) if self._syncs_first:
                reg_id = self.machine.streams[ack.incarnation]
                for number in range(ack.first, ack.last + 1):
                    assert self.durable.get((reg_id, number)) == ack.incarnation, f"{number} acknowledged, not synced"
        Node.perform(self, effect)

    @property
    def _syncs_first(self) -> bool:
        kept = self.machine.config.repository
        return kept is not None and kept.kind in (RepositoryType.DISK, RepositoryType.REDUCED_FD) and not kept.allow_rpp

    def perform_own(self, effect: fx.Effect) -> None:
        """Write, read back, join."""
        match effect:
            case fx.PersistMessages():
                self.hold(effect)
                self.write(effect)
            case fx.CacheMessages():
                self.hold(effect)
            case fx.PersistCached():
                self.write_held(effect)
            case fx.Uncache():
                change(self.memory, fx.Reclaim(0, effect.source_reg_id, effect.number))
            case fx.PersistClient() | fx.Cut() | fx.Reclaim() | fx.Forget():
                change(self.memory, effect)
                self.write(effect)
            case fx.Discard():
                del self.runs[effect.token]
            case fx.SendStored():
                self.send_stored(effect)
            case fx.StartProxy():
                self.start_proxy(effect)
            case fx.StopProxy():
                self.world.crash(self.proxies.pop(effect.source_reg_id))
            case fx.Join():
                for source in self.sources(effect.incarnation):
                    self.world.at(LINK_NS, lambda source=source: source.admit(self))  # type: ignore[misc]
            case fx.Leave():
                for source in self.sources(effect.incarnation):
                    source.joined = [joiner for joiner in source.joined if joiner is not self]
            case _:
                raise AssertionError(effect)

    def hold(self, effect: fx.PersistMessages | fx.CacheMessages) -> None:
        """Keep in memory."""
        assert self.runs[effect.token][0] == effect.incarnation
        if effect.done:
            del self.runs[effect.token]
        for number in range(effect.first, effect.first + effect.count):
            self.memory[effect.source_reg_id, number] = effect.incarnation

    def write_held(self, effect: fx.PersistCached) -> None:
        """Write what is in memory; the records are those of messages that are written at once."""
        for number in range(effect.first, effect.last + 1):
            incarnation = self.memory[effect.source_reg_id, number]
            self.write(fx.PersistMessages(effect.ticket, effect.source_reg_id, incarnation, 0, 0, 1, number, done=True))

    def sources(self, incarnation: int) -> list[SourceNode]:
        """The sources of this life: one, or none any more."""
        nodes = [node for node in self.world.nodes.values() if isinstance(node, SourceNode)]
        return [node for node in nodes if node.machine.config.incarnation == incarnation]

    def send_stored(self, effect: fx.SendStored) -> None:
        """From memory, or else from the disk."""
        target = self.world.nodes.get(effect.to)
        if isinstance(target, Joiner):
            for number in range(effect.first, effect.last + 1):
                key = effect.source_reg_id, number
                incarnation = self.memory[key] if key in self.memory else self.contents[key]
                target.recover_run(effect.session, incarnation, number, 1)

    def start_proxy(self, effect: fx.StartProxy) -> None:
        """A source of ours stands in."""
        self.world.serial += 1
        address = f"{self.address}/proxy{effect.source_reg_id}"
        life = attrs.evolve(
            proxy_config(effect), incarnation=PROXY_LIFE + self.world.serial, reply_to=address, transport=address
        )
        self.proxies[effect.source_reg_id] = SourceNode.create(self.world, life)

    def stop(self) -> None:
        """Its proxies end with it."""
        for proxy in self.proxies.values():
            self.world.crash(proxy)

    def write(self, effect: fx.StoreEffect) -> None:
        """Into the cache; a sync takes a while and covers what was written before it began."""
        change(self.contents, effect)
        self.unsynced.append(effect)
        if not self.syncing:
            self.sync()

    def sync(self) -> None:
        """Begin a sync."""
        self.syncing = True
        batch = list(self.unsynced)

        def done() -> None:
            if self.world.nodes.get(self.address) is not self:
                return
            self.syncing = False
            for effect in batch:
                self.unsynced.popleft()
                self.disk.append(effect)
                change(self.durable, effect)
            self.arrive(inputs.Persisted(batch[-1].ticket))  # type: ignore[union-attr]
            if self.unsynced and not self.syncing:
                self.sync()

        self.world.at(SYNC_NS, done)


__all__ = ["LINK_NS", "Content", "Node", "ReceiverNode", "SourceNode", "StoreNode", "World"]
