"""Define the variants of the composed system, each with its faults, its rules and its share of the explored states."""

from typing import Final

import attrs

from stablecast.config.profiles import profile
from stablecast.core.protocol.settings import SourceConfig, StoreBehavior, StoreSpec
from stablecast.lab.model.store_process import store_address
from stablecast.lab.prove.bounds import TAKEOVERS, ProofFault
from stablecast.lab.prove.instance import Instance, ProofBounds
from stablecast.lab.prove.rules import QUORUM, ROUND_ROBIN, WIPED, Rule
from stablecast.lab.prove.state import NOBODY, Deed, Run
from stablecast.lab.prove.world import ProofWorld

STORES: Final = 3
DELAY_NS: Final = 1


@attrs.frozen
class Variant:
    """Describe one composed system; `share` is its percentage of the states."""

    name: str
    purpose: str
    rules: tuple[Rule, ...]
    share: int
    messages: int = 1
    faults: tuple[ProofFault, ...] = ()
    restarts: int = 1
    delay_ns: int = 0
    behavior: StoreBehavior = StoreBehavior.QC
    opening: Run = ()

    def world(self, states: int) -> ProofWorld:
        bounds = ProofBounds(self.messages, self.restarts, states=states, faults=self.faults).passes(STORES)[0]
        defaults = profile("safe")
        stores = tuple(StoreSpec(store_address(index), 1) for index in range(STORES))
        groups = attrs.evolve(defaults.source.groups, sizes=() if self.behavior is StoreBehavior.RR else (STORES,))
        source: SourceConfig = attrs.evolve(
            defaults.source, topic="topic", stores=stores, groups=groups, behavior=self.behavior
        )
        repairs = (defaults.store.repairs, defaults.receiver.repairs)
        instance = Instance(source, *repairs, bounds, refill=True)
        return ProofWorld.create(instance, fine=True, delay_ns=self.delay_ns, opening=self.opening)


BEGUN: Final[Run] = (
    (Deed.BEGIN, tuple(range(STORES))),
    *((Deed.INFORM, (index,)) for index in range(STORES)),
)
"""The source runs, and all stores know it."""

UNREAD: Final[Run] = (
    (Deed.BEGIN, (0, 1)),
    (Deed.INFORM, (0,)),
    (Deed.INFORM, (1,)),
    (Deed.ATTEND, ()),
    (Deed.SEND, (NOBODY,)),
    (Deed.SYNC, (0,)),
    (Deed.SYNC, (1,)),
)
"""One store was always away. The others have a stable message, and a receiver that never got it."""

VARIANTS: Final = (
    Variant("takeovers", "two processes of one owner, one message", QUORUM, 30, faults=TAKEOVERS),
    Variant("messages", "two messages, whose syncs and losses are parts", QUORUM, 15, messages=2),
    Variant(
        "memory", "stores that keep messages in memory before the disk", QUORUM, 20, faults=TAKEOVERS, delay_ns=DELAY_NS
    ),
    Variant(
        "receiver",
        "a receiver that dies and returns, while stores come and go",
        QUORUM,
        15,
        messages=2,
        restarts=0,
        opening=BEGUN,
    ),
    Variant("wipes", "disks that are lost, with refill between", WIPED, 6, faults=(ProofFault.WIPE,), opening=BEGUN),
    Variant(
        "unread",
        "a disk that is lost before a receiver returns, while stores lack messages",
        WIPED,
        4,
        faults=(ProofFault.WIPE,),
        opening=UNREAD,
    ),
    Variant("round robin", "one store at a time", ROUND_ROBIN, 10, messages=2, behavior=StoreBehavior.RR),
)
