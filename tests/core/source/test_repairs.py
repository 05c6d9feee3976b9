"""The repairs on the side of the source, each with the run that refutes the documented rule (formal design, section 7).

Every run is played twice: with the repair nothing stable is lost, without it the documented rule loses it.
"""

from typing import Any

import pytest

from stablecast.core.errors import ConfigError
from stablecast.core.protocol.events import Event, Overtaken, RegistrationComplete, Stable, StableFlag
from stablecast.core.protocol.inputs import Gone, Sent, Start, Tick
from stablecast.core.protocol.messages import Pace, StableAck
from stablecast.core.protocol.quorum import Consensus, GroupRules, Intergroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.setting_relations import relations
from stablecast.core.protocol.settings import StoreSpec
from tests.core.drivers import INTERVAL_NS, SourceDriver
from tests.core.samples import LIFE, SECOND

DOCUMENTED = Repair.NONE
TWO_GROUPS = tuple(StoreSpec(f"store{index}:1", 40 + index, group=index // 3) for index in range(6))


def started(**changes: Any) -> SourceDriver:
    driver = SourceDriver(**changes)
    driver.feed(Start())
    return driver


def first_number(told: list[Event]) -> int | None:
    """Return the number from which the source may send, or None."""
    return next((event.number for event in told if isinstance(event, RegistrationComplete)), None)


@pytest.mark.rows("P-525")
@pytest.mark.parametrize("rule", [Intergroup.ANY, Intergroup.ALL_ACTIVE])
@pytest.mark.parametrize(("repairs", "resumes"), [(Repair.ALL, None), (DOCUMENTED, 0)])
def test_numbers_stable_in_another_group_are_not_used_again(
    rule: Intergroup, repairs: Repair, resumes: int | None
) -> None:
    """EVERY_GROUP, P-525: the first group was away while the second made 0 to 9 stable; now the second is away.

    One group is enough by the rules, so a source that returns uses the numbers again, unless it waits for the other.
    """
    driver = started(specs=TWO_GROUPS, groups=GroupRules((3, 3), intergroup=rule), repairs=repairs)
    told = driver.grant(0, 1, 2) + driver.feed(Tick(), INTERVAL_NS)
    assert first_number(told) == resumes
    if resumes is None:
        assert first_number(driver.grant(3, 4, high=9, old=True, now=INTERVAL_NS + 1)) == 10


@pytest.mark.parametrize("old", [False, True])
def test_a_source_that_is_certainly_new_needs_the_rules_only(old: bool) -> None:
    """EVERY_GROUP: it has no RegID and no session id, and no store knows it. If one does it was here before."""
    new = tuple(StoreSpec(store.address, group=store.group) for store in TWO_GROUPS)
    driver = started(specs=new, groups=GroupRules((3, 3)))
    told = driver.grant(0, 1) + driver.grant(2, old=old) + driver.feed(Tick(), INTERVAL_NS)
    assert first_number(told) == (None if old else 0)


def test_a_source_that_was_complete_before_needs_the_rules_only() -> None:
    """EVERY_GROUP: it knows itself what it sent; quorum lost and found again asks for no other group."""
    driver = SourceDriver.active(specs=TWO_GROUPS, groups=GroupRules((3, 3)))
    for store in range(6):
        driver.feed(Gone(f"store{store}:1"), 100)
    driver.feed(Tick(), 100 + INTERVAL_NS)
    assert not driver.machine.can_send
    assert first_number(driver.grant(0, 1, now=120, old=True)) == 0


@pytest.mark.parametrize("rule", [Intergroup.MAJORITY, Intergroup.ALL])
def test_rules_that_need_every_group_are_unchanged(rule: Intergroup) -> None:
    """EVERY_GROUP: two majorities of groups share a group, and two quorums of it a store."""
    specs = (*TWO_GROUPS, StoreSpec("store6:1", 46, group=2))
    driver = started(specs=specs, groups=GroupRules((3, 3, 1), intergroup=rule))
    told = driver.grant(0, 1, 3, 4) + driver.feed(Tick(), INTERVAL_NS)
    assert (first_number(told) == 0) is (rule is Intergroup.MAJORITY)


@pytest.mark.rows("P-511", "P-526")
@pytest.mark.parametrize("repairs", [Repair.ALL, DOCUMENTED])
def test_backup_stores_make_stable_messages_unavailable(repairs: Repair) -> None:
    """EVERY_GROUP, P-511, P-526: a group of three that lists four has two quorums without a store in common."""
    four = tuple(StoreSpec(f"store{index}:1", 40 + index) for index in range(4))
    if repairs is Repair.ALL:
        with pytest.raises(ConfigError, match="may become unavailable"):
            started(specs=four, groups=GroupRules((3,)), repairs=repairs)
        return
    driver = started(specs=four, groups=GroupRules((3,)), repairs=repairs)
    driver.grant(0, 1, 2, 3)
    driver.feed(Sent(0, 1, 10))
    told = [event for store in (0, 1) for event in driver.hear(StableAck(store, LIFE, 0, 0))]
    assert any(isinstance(event, Stable) and StableFlag.STABLE in event.flags for event in told)
    successor = started(specs=four, groups=GroupRules((3,)), repairs=repairs)
    assert first_number(successor.grant(2, 3) + successor.feed(Tick(), INTERVAL_NS)) == 0


@pytest.mark.parametrize(("repairs", "sends"), [(Repair.ALL, False), (Repair.ALL & ~Repair.LEASE, True)])
def test_a_client_stops_before_its_reg_id_may_be_given_away(repairs: Repair, sends: bool) -> None:
    """LEASE: the process was stopped for longer than the activity timeout; another has its RegID by now."""
    driver = started(stores=1, repairs=repairs)
    driver.grant(0, activity_timeout_ms=8000)
    driver.feed(Tick(), 8 * SECOND)
    assert driver.machine.can_send is sends


@pytest.mark.parametrize(("repairs", "taken"), [(Repair.ALL, False), (Repair.ALL & ~Repair.LEASE, True)])
def test_a_grant_that_was_read_too_late_proves_nothing(repairs: Repair, taken: bool) -> None:
    """LEASE: it lay in the socket while the process stood still."""
    driver = started(stores=1, repairs=repairs)
    driver.grant(0, now=8 * SECOND, activity_timeout_ms=8000)
    assert driver.machine.can_send is taken


@pytest.mark.parametrize(("repairs", "over"), [(Repair.ALL, True), (Repair.ALL & ~Repair.LEASE, False)])
def test_a_life_that_was_replaced_ends(repairs: Repair, over: bool) -> None:
    """LEASE: it lost its stores, another life registered and was announced; going on would cut that one back."""
    driver = SourceDriver.active(repairs=repairs)
    for store in (0, 1):
        driver.feed(Gone(f"store{store}:1"), 100)
    driver.feed(Tick(), 100 + INTERVAL_NS)
    told = driver.grant(0, now=120, old=True, term=3, lives=((LIFE, 0), (9, 0)), lives_term=2)
    assert (told == [Overtaken()]) is over
    assert driver.machine.can_send is not over


@pytest.mark.rows("P-416")
@pytest.mark.parametrize(
    ("consensus", "highs", "safe"),
    [
        (Consensus.HIGHEST, (9, 9, -1), True),
        (Consensus.MAJORITY, (9, -1), False),
        (Consensus.LOWEST, (9, 9, -1), False),
    ],
)
def test_only_the_highest_number_is_never_used_again(consensus: Consensus, highs: tuple[int, ...], safe: bool) -> None:
    """Formal design, 7.1: 0 to 9 are stable at two stores of three, the third has none; two or three of them answer.

    An option, not a repair: it is found and warned of (P-416).
    """
    driver = started(consensus=consensus)
    told = [event for index, high in enumerate(highs) for event in driver.grant(2 - index, high=high)]
    number = first_number(told + driver.feed(Tick(), INTERVAL_NS))
    assert (number == 10) is safe
    warned = [finding for finding in relations(driver.machine.config) if finding.code == "consensus"]
    assert bool(warned) is not (consensus is Consensus.HIGHEST)


@pytest.mark.parametrize(("repairs", "given_up"), [(Repair.ALL, False), (DOCUMENTED, True)])
def test_under_rpp_the_stability_lifetime_does_not_open_the_window(repairs: Repair, given_up: bool) -> None:
    """PACED (formal design, 7.8): the store withholds its acknowledgement because a receiver has not consumed."""
    driver = started(
        stores=1, pace=Pace.RECEIVERS, flight_bytes=100, stability_lifetime_ns=50, check_ns=10, repairs=repairs
    )
    driver.grant(0, pace=Pace.RECEIVERS)
    driver.feed(Sent(0, 1, 10))
    for now in range(10, 100, 10):
        driver.feed(Tick(), now)
    assert (driver.machine.window.unsettled_messages == 0) is given_up
