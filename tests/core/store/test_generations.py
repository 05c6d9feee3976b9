"""A store that learns of a later generation of its own runs on an older copy of its directory."""

from typing import Any

import attrs
import pytest

from stablecast.core.machine.units import SECOND
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LackCause, OlderCopy, RefillStarted
from stablecast.core.protocol.generations import MARK_BITS, NONE
from stablecast.core.protocol.inputs import Tick
from stablecast.core.protocol.messages import Register, Registered, RetransmitRequest, StoreEntry, StoreMemory
from stablecast.core.protocol.repairs import Repair
from tests.core.drivers import RECEIVER, SOURCE, StoreDriver
from tests.core.samples import LIFE, events, info, register

COPY, LATER = (5 << MARK_BITS | 7, 6 << MARK_BITS | 1)
PEERS = (StoreEntry(1, 0, "peer:1", 61, 0, LATER), StoreEntry(2, 0, "peer:2", 62, 0))
OWN = StoreEntry(0, 0, "store:1", 50, 0, COPY)


def client(**changes: Any) -> fx.Client:
    """Return the record of a source whose life announced numbers up to 9, of which a copy holds 0..4."""
    driver = StoreDriver.with_source()
    driver.hear(info(high=4, stores=(OWN, *PEERS)))
    return attrs.evolve(driver.persisted()[-1], **changes)


def copied(memory: bool = True, generation: int = COPY, **changes: Any) -> StoreDriver:
    driver = StoreDriver(refill_rate=0, refill_byte_rate=0, **changes)
    driver.machine.recover([client()], [(50, 0, 5, 500)], {}, 0, memory=memory, generation=generation)
    driver.feed(Tick())
    return driver


def again(**changes: Any) -> Register:
    return register(**{**SOURCE, "incarnation": LIFE + 1, "known_generation": LATER, **changes})


def standing(driver: StoreDriver) -> StoreMemory:
    memory: StoreMemory = driver.machine.status.clients[50].client.memory
    return memory


@pytest.mark.parametrize("by", ["registration", "receiver", "announcement"])
def test_a_copy_that_nobody_declared_is_noticed(by: str) -> None:
    driver = copied()
    if by == "announcement":
        driver.hear(info(high=9, stores=(attrs.evolve(OWN, generation=LATER), *PEERS)))
    else:
        driver.hear(again() if by == "registration" else register(**RECEIVER, known_generation=LATER))
    assert events(driver.effects)[0] == OlderCopy(5, 6)
    assert driver.machine.status.memory is StoreMemory.LOST
    # A life that knows an earlier generation only may have counted on this store, and been followed (seed 1311654).
    assert standing(driver) is StoreMemory.LOST
    (written,) = [effect for effect in driver.effects if isinstance(effect, fx.PersistMemory)]
    assert written.generation >> MARK_BITS == 7
    assert driver.machine.status.muted_until is not None
    driver.sync()
    assert not driver.sent(Registered)


@pytest.mark.parametrize("names", [True, False], ids=["this", "none"])
def test_a_life_that_heard_of_the_loss_gives_the_vote_back(names: bool) -> None:
    """So does one of an earlier release, which names no generation."""
    driver = copied()
    driver.hear(info(high=9, stores=(attrs.evolve(OWN, generation=LATER), *PEERS)))
    (written,) = [effect for effect in driver.effects if isinstance(effect, fx.PersistMemory)]
    own = attrs.evolve(OWN, generation=written.generation if names else 0)
    driver.hear(info(high=9, stores=(own, *PEERS)))
    assert standing(driver) is StoreMemory.KEPT


def test_a_copy_asks_for_what_it_lacks_of_a_life_that_goes_on() -> None:
    driver = copied()
    driver.hear(info(high=9, stores=(attrs.evolve(OWN, generation=LATER), *PEERS)))
    driver.hear(again(incarnation=LIFE + 1), 60 * SECOND)
    driver.sync(60 * SECOND)
    lives = ((LIFE, 0), (LIFE + 1, 10))
    stores = (OWN, *PEERS)
    told = driver.hear(info(incarnation=LIFE + 1, low=10, high=9, term=2, lives=lives, stores=stores), 60 * SECOND)
    assert [one for one in told if isinstance(one, RefillStarted)] == [RefillStarted(50, 5, LackCause.EMPTY)]
    driver.feed(Tick(), 60 * SECOND + 1)
    assert [(one.first, one.last) for _, one in driver.sent(RetransmitRequest)] == [(5, 9)]


def test_a_store_that_knows_that_it_lost_its_memory_only_counts_on() -> None:
    driver = copied(memory=False)
    before = driver.machine.status.muted_until
    driver.hear(again())
    assert events(driver.effects) == []
    assert [effect.generation >> MARK_BITS for effect in driver.done(fx.PersistMemory)] == [7]
    assert driver.machine.status.muted_until == before


@pytest.mark.parametrize(
    ("known", "generation", "repairs"),
    [
        (COPY, COPY, Repair.ALL),
        (LATER, NONE, Repair.ALL),
        (LATER, COPY, Repair.ALL & ~Repair.VOTE),
        (NONE, COPY, Repair.ALL),
    ],
    ids=["same", "not counted", "documented", "unknown"],
)
def test_a_store_that_nobody_knows_better_serves_on(known: int, generation: int, repairs: Repair) -> None:
    driver = copied(generation=generation, repairs=repairs)
    driver.hear(again(known_generation=known))
    driver.sync()
    assert standing(driver) is StoreMemory.KEPT
    (grant,) = [one for _, one in driver.sent(Registered)]
    assert (grant.store_generation, grant.peers) == (generation, ((1, "peer:1", LATER),))


def test_it_is_noticed_once() -> None:
    driver = copied()
    driver.hear(again())
    driver.hear(again())
    assert events(driver.effects) == []


def test_an_announcement_lowers_no_generation() -> None:
    """The life asked no store that knows the later one."""
    driver = copied()
    driver.hear(again(known_generation=COPY))
    driver.sync()
    older = attrs.evolve(PEERS[0], generation=COPY, version=9)
    driver.hear(
        info(incarnation=LIFE + 1, low=5, high=4, term=2, lives=((LIFE, 0), (LIFE + 1, 5)), stores=(OWN, older))
    )
    entry = driver.machine.status.clients[50].client.stores[1]
    assert (entry.version, entry.generation) == (9, LATER)
