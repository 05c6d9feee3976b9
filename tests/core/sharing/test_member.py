"""A member of a group: whom it knows, what it claims, and the order in which a share is given up."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stablecast.core.machine.seeded import Seeded
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.sharing.division import owners
from stablecast.core.sharing.member import (
    MAX_MEMBERS,
    Announce,
    Disagreement,
    GroupMember,
    Heard,
    Left,
    MemberConfig,
    MemberLeave,
    MemberStart,
    Progress,
)
from stablecast.core.sharing.share import Close, Drain, Open, Record, ShareEvent, ShareState

SHARES = 4
ME, OTHER = 1, 2
MINE = [share for share, owner in enumerate(owners([ME, OTHER], SHARES)) if owner == ME]
THEIRS = [share for share in range(SHARES) if share not in MINE]


def started(**settings: int) -> GroupMember:
    """Return a member that has announced itself, and has claimed its shares if it does not listen first."""
    member = GroupMember(MemberConfig(ME, SHARES, **settings), Seeded(1))
    member.receive(MemberStart(), 0)
    assert member.take_effects()[0] == Announce()
    return member


def alone() -> GroupMember:
    member = started(settle_ns=0)
    for share in range(SHARES):
        member.receive(Progress(share, ShareEvent.GRANTED), 0)
    member.take_effects()
    return member


def test_a_new_member_listens_first() -> None:
    member = started()
    member.receive(Heard(OTHER, SHARES), 10)
    assert member.take_effects() == [Announce()]
    member.handle_timeout(SECOND)
    assert [effect for effect in member.take_effects() if isinstance(effect, Open)] == [Open(share) for share in MINE]


def test_a_member_announces_itself_again_and_again() -> None:
    member = started()
    assert member.next_timeout() == 500 * MILLISECOND
    member.handle_timeout(500 * MILLISECOND)
    assert member.take_effects() == [Announce()]
    assert member.next_timeout() == SECOND


def test_a_share_is_given_up_in_order() -> None:
    """Drain, record, close; a share that comes back meanwhile is claimed after that."""
    member = alone()
    member.receive(Heard(OTHER, SHARES), 1)
    assert member.take_effects() == [Announce(), *(Drain(share) for share in THEIRS)]
    share = THEIRS[0]
    member.receive(Left(OTHER), 2)
    assert member.take_effects() == []
    for event, effect in (
        (ShareEvent.DRAINED, Record(share)),
        (ShareEvent.RECORDED, Close(share)),
        (ShareEvent.CLOSED, Open(share)),
    ):
        member.receive(Progress(share, event), 3)
        assert member.take_effects() == [effect]


def test_a_silent_member_counts_no_more() -> None:
    member = alone()
    member.receive(Heard(OTHER, SHARES), 1)
    assert member.members == 2
    member.handle_timeout(3 * SECOND)
    assert member.members == 2
    member.handle_timeout(3 * SECOND + 1)
    assert member.members == 1


def test_the_next_timeout_is_that_of_the_member_or_the_share_that_comes_first() -> None:
    member = started(settle_ns=0, announce_ns=3600 * SECOND)
    for share in range(SHARES):
        member.receive(Progress(share, ShareEvent.CONTESTED), share)
    assert member.next_timeout() == min(member.waits.values()) < max(member.waits.values())
    member.handle_timeout(2 * SECOND + SHARES)
    for number in (1, 2):
        member.receive(Heard(OTHER + number, SHARES), 3 * SECOND + number)
    assert member.next_timeout() == 6 * SECOND + 1


def test_a_contested_claim_waits() -> None:
    member = started(settle_ns=0, announce_ns=10 * SECOND)
    member.receive(Progress(0, ShareEvent.CONTESTED), 1)
    assert member.take_effects() == [Close(0)]
    member.receive(Progress(0, ShareEvent.CLOSED), 2)
    assert member.take_effects() == []
    due = member.next_timeout()
    assert due is not None
    assert 500 * MILLISECOND <= due - 1 <= 2 * SECOND
    member.handle_timeout(due)
    assert member.take_effects() == [Open(0)]


def test_a_lost_share_is_drained_and_claimed_anew() -> None:
    member = alone()
    member.receive(Progress(0, ShareEvent.LOST), 1)
    assert member.take_effects() == [Drain(0)]
    assert member.held == (1, 2, 3)


def test_a_member_that_leaves_gives_up_everything() -> None:
    member = alone()
    member.receive(MemberLeave(), 1)
    assert member.take_effects() == [Announce(leaving=True), *(Drain(share) for share in range(SHARES))]
    member.receive(Heard(OTHER, SHARES), 2)
    assert member.take_effects() == []
    assert member.next_timeout() is None


def test_another_number_of_shares_is_reported_once() -> None:
    member = alone()
    for _ in range(2):
        member.receive(Heard(OTHER, SHARES + 1), 1)
    assert member.take_effects() == [Disagreement(OTHER, SHARES + 1)]
    assert member.members == 1
    for stranger in range(10, 10 + 2 * MAX_MEMBERS):
        member.receive(Heard(stranger, 1), 1)
    assert len(member.strangers) == MAX_MEMBERS


def test_members_are_bounded() -> None:
    """Anybody may announce any number of members."""
    member = alone()
    for other in range(10, 10 + 2 * MAX_MEMBERS):
        member.receive(Heard(other, SHARES), 1)
    assert member.members == 1 + MAX_MEMBERS
    member.receive(Heard(10, SHARES), 2)
    member.handle_timeout(1 + member.config.silence_ns)
    assert list(member.others) == [10], "a known member is heard although there is room for no other"


class Group(RuleBasedStateMachine):
    """Any inputs in any order: the effects of a share keep their order, and the machine never refuses an input."""

    def __init__(self) -> None:
        super().__init__()
        self.member = GroupMember(MemberConfig(ME, SHARES), Seeded(7))
        self.now = 0
        self.asked: dict[int, type[object]] = dict.fromkeys(range(SHARES), Close)

    @rule(other=st.integers(0, 5))
    def hear(self, other: int) -> None:
        self.member.receive(Heard(other, SHARES), self.now)

    @rule(other=st.integers(0, 5))
    def lose(self, other: int) -> None:
        self.member.receive(Left(other), self.now)

    @rule()
    def start(self) -> None:
        self.member.receive(MemberStart(), self.now)

    @rule(share=st.integers(0, SHARES - 1), event=st.sampled_from(sorted(set(ShareEvent) - {ShareEvent.CLAIM})))
    def progress(self, share: int, event: ShareEvent) -> None:
        self.member.receive(Progress(share, event), self.now)

    @rule(span=st.integers(0, 2 * SECOND))
    def wait(self, span: int) -> None:
        self.now += span
        self.member.handle_timeout(self.now)

    @invariant()
    def effects_are_in_order(self) -> None:
        follows = {Close: (Open,), Open: (Drain, Close), Drain: (Record,), Record: (Close,)}
        for effect in self.member.take_effects():
            if isinstance(effect, Open | Drain | Record | Close):
                assert type(effect) in follows[self.asked[effect.share]]
                self.asked[effect.share] = type(effect)

    @invariant()
    def holds_only_its_own(self) -> None:
        assert set(self.member.in_state(ShareState.CLAIMING, ShareState.HELD)) <= self.member.wanted


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
