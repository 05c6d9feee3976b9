"""Access lists. Rows R-270 to R-275."""

import pytest

from stablecast.transports.resolution.records import SourceRecord
from stablecast.transports.routing.access import AccessEntry, Condition, Subject, admits, properties_of

RM = SourceRecord("LBTRM:10.0.0.1:14390:00000007:224.9.10.11:14400", 7, 1)
RU = SourceRecord("LBT-RU:10.0.0.1:14380:00000007", 7, 1)
TCP = SourceRecord("10.0.0.1:14371", 7, 1)


def entry(*conditions: tuple[Subject, str | int], accept: bool = True) -> AccessEntry:
    return AccessEntry(accept, tuple(Condition(*one) for one in conditions))


@pytest.mark.rows("R-271")
def test_the_first_entry_that_applies_decides() -> None:
    entries = (entry((Subject.TOPIC, "orders"), accept=False), entry((Subject.PCRE, "^ord")))
    assert not admits(entries, properties_of("orders", TCP))
    assert admits(entries, properties_of("ordinary", TCP))


@pytest.mark.rows("R-271")
def test_a_list_rejects_what_no_entry_applies_to() -> None:
    assert not admits((), properties_of("orders", TCP))
    assert admits(None, properties_of("orders", TCP))


@pytest.mark.rows("R-271")
def test_conditions_of_one_entry_are_joined_by_and() -> None:
    both = (entry((Subject.TOPIC, "orders"), (Subject.TOPIC, "trades")),)
    assert not admits(both, properties_of("orders", TCP))


@pytest.mark.rows("R-274")
@pytest.mark.parametrize(
    ("record", "condition", "holds"),
    [
        (RM, Condition(Subject.TRANSPORT, "lbt-rm"), True),
        (RM, Condition(Subject.GROUP, 0xE0090A0B), True),
        (RM, Condition(Subject.UDP_DESTINATION, 14_000, "gt"), True),
        (RM, Condition(Subject.TCP_SOURCE, 14_371), False),
        (RM, Condition(Subject.TCP_SOURCE, 14_371, "ne"), True),
        (RU, Condition(Subject.TRANSPORT, "lbt-ru"), True),
        (RU, Condition(Subject.UDP_SOURCE, 14_380), True),
        (TCP, Condition(Subject.TCP_SOURCE, 14_371, "le"), True),
        (TCP, Condition(Subject.SOURCE_ADDRESS, 0x0A000001), True),
        (TCP, Condition(Subject.SOURCE_ADDRESS, 0x0A000001, "lt"), False),
        (TCP, Condition(Subject.REGEX, "^t"), False),
    ],
)
def test_a_condition_sees_the_source_that_the_router_joins(
    record: SourceRecord, condition: Condition, holds: bool
) -> None:
    assert condition.holds(properties_of("orders", record)) is holds
