"""The division of shares: even, the same everywhere, and steady; against a division by counting."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.core.sharing.division import owners, session_id, share_of_key, share_of_number

IDS = st.sets(st.integers(0, (1 << 64) - 1), min_size=1, max_size=40)


def naive(members: set[int], shares: int) -> list[int]:
    """Return how many shares each member gets if they are handed out in turn."""
    return sorted(len(range(turn, shares, len(members))) for turn in range(len(members)))


@given(IDS, st.integers(1, 64))
def test_shares_are_even_and_members_agree(members: set[int], shares: int) -> None:
    """Each share has one owner, each member as many as in turn, in whichever order a member knows them."""
    division = owners(sorted(members), shares)
    assert len(division) == shares
    assert sorted(division.count(member) for member in members) == naive(members, shares)
    assert owners(sorted(members, reverse=True), shares) == division


@given(IDS.filter(lambda members: len(members) > 1))
def test_few_shares_move_when_a_member_leaves(members: set[int]) -> None:
    """All shares of the member that left move, and few others: those by which the parts became uneven."""
    before, (left, *rest) = owners(members, 64), sorted(members)
    after = owners(rest, 64)
    moved = sum(old != new for old, new in zip(before, after, strict=True))
    assert before.count(left) <= moved <= 64 // 2 + before.count(left)


@given(st.binary(), st.integers(1, 256), st.integers(0, 1 << 40))
def test_each_message_has_one_share(key: bytes, shares: int, number: int) -> None:
    assert 0 <= share_of_key(key, shares) < shares
    assert 0 <= share_of_number(number, shares) < shares


def test_session_ids_differ() -> None:
    """By group, by number of shares, and by share: another division begins anew."""
    found = {session_id(group, shares, 0) for group in ("a", "b", "a1") for shares in (1, 2, 16)}
    assert len(found) == 9
    ids = sorted(session_id("billing", 256, share) for share in range(256))
    assert all(low < high < 1 << 64 for low, high in pairwise([0, *ids]))


@pytest.mark.parametrize(("key", "share"), [(b"alice", 7), (b"bob", 0), (b"carol", 3)])
def test_shares_of_keys_are_those_of_earlier_releases(key: bytes, share: int) -> None:
    """Members of two releases divide alike, so a release may not change this."""
    assert share_of_key(key, 16) == share


def test_session_ids_are_those_of_earlier_releases() -> None:
    assert session_id("billing", 16, 3) == 0x856BF1249C8BD326
