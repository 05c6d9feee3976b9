"""Addresses with the number of a domain, and the addresses in messages from another one."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.protocol import messages as m
from stablecast.transports.codec.domains import MAX_DOMAIN, from_domain, join_domain, outbound, split_domain
from tests.support.vocabulary import MESSAGES, addresses

NUMBERS = st.integers(1, MAX_DOMAIN)


@pytest.mark.rows("R-200")
@given(st.integers(0, MAX_DOMAIN), addresses())
def test_an_address_is_split_as_it_was_joined(domain: int, address: str) -> None:
    assert split_domain(join_domain(domain, address)) == (domain, address)


@pytest.mark.parametrize("text", ["", "host", "host:1", "a:b:1", ":10.0.0.1:1", "-1:10.0.0.1:1"])
def test_other_texts_have_no_domain(text: str) -> None:
    assert split_domain(text) == (0, text)


@given(MESSAGES, NUMBERS, NUMBERS)
def test_a_message_from_ones_own_domain_is_as_it_was(message: m.Message, own: int, other: int) -> None:
    assert from_domain(message, own, own) == message
    assert from_domain(from_domain(message, own, other), other, own) == message or own == other


def test_the_answer_goes_to_the_domain_of_the_question() -> None:
    asked = m.RetransmitRequest(m.Role.RECEIVER, 7, 1, 1, 0, 5, "10.0.0.2:14391")
    assert from_domain(asked, 2, 1) == attrs.evolve(asked, reply_to="2:10.0.0.2:14391")
    forwarded = attrs.evolve(asked, reply_to="1:10.0.0.2:14391")
    assert from_domain(forwarded, 2, 1) == asked


@given(st.lists(addresses(), max_size=3), addresses(), NUMBERS, NUMBERS)
def test_an_announcement_names_the_domain_of_each_address(
    stores: list[str], request: str, origin: int, other: int
) -> None:
    entries = tuple(m.StoreEntry(index, 0, at, 1, 1, 0) for index, at in enumerate(stores))
    info = m.SourceInfo(7, "t", 1, 0, 9, request, (len(stores),), False, entries)
    sent = outbound(info, origin)
    assert [one.address for one in sent.stores] == [join_domain(origin, at) for at in stores]
    assert from_domain(sent, origin, origin) == info
    assert from_domain(sent, other, other) == (info if other == origin else sent)
    assert outbound(info, 0) == from_domain(info, 0, 0) == info


def test_a_store_without_a_number_is_in_the_domain_of_the_source() -> None:
    entry = m.StoreEntry(0, 0, "10.0.0.3:14567", 1, 1, 0)
    info = m.SourceInfo(7, "t", 1, 0, 9, "1:10.0.0.1:14391", (1,), False, (entry,))
    received = from_domain(info, 2, 2)
    assert isinstance(received, m.SourceInfo)
    assert received.stores[0].address == "1:10.0.0.3:14567"
