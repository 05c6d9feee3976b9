"""Rules that planted faults showed to be untested (`tools/mutants`): mostly bounds, from both sides."""

import pytest

from stablecast.core.machine.seeded import Seeded
from stablecast.core.protocol import effects as fx
from stablecast.core.protocol.events import LostAtStore
from stablecast.core.protocol.messages import RetransmitRequest, Role
from stablecast.core.protocol.request_window import Target
from stablecast.core.protocol.settings import OtrTimes, ReceiverConfig
from stablecast.core.receiver.delivery_window import DeliveryWindow
from stablecast.core.receiver.recovery import Recovery
from stablecast.core.store.clients import LAST_REG_ID, ClientTable
from stablecast.core.store.retransmission import RetransmissionService
from tests.core.drivers import REPOSITORY_CONFIG, RepositoryDriver
from tests.core.samples import LIFE, SECOND, drain, events, register, sends
from tests.core.stations import ACTIVITY, INTERVAL, Station

DELAY_NS = 100


@pytest.mark.rows("P-547", "P-552")
def test_stores_stand_at_different_times() -> None:
    """Some before an interval is over, some after, so that one is first."""
    waits = {Station(seed).silent() - ACTIVITY for seed in range(20)}
    assert len(waits) == 20
    assert min(waits) < INTERVAL * 3 // 4
    assert max(waits) > INTERVAL * 5 // 4


def test_runs_beyond_the_proximity_are_not_held() -> None:
    """U6: it ends as many numbers ahead of the next one as may be held, or goes and is recovered later."""
    for stop, effects in ((4, []), (5, [fx.Discard(1)])):
        window, out = DeliveryWindow(proximity=4), list[fx.Effect]()
        window.begin(0, out)
        window.on_run(1, stop, 1, False, out)
        assert out == effects
        assert [(held.first, held.stop) for held in window.held] == ([] if effects else [(1, stop)])


@pytest.mark.rows("P-917")
def test_a_gap_of_the_burst_limit_is_asked_for_and_no_more() -> None:
    """T30."""
    for first, lost in ((11, []), (12, [LostAtStore(50, 1, 11, burst=True)])):
        shop = RepositoryDriver(burst=10)
        shop.data(0, 1)
        shop.data(first, 1)
        assert [event for event in events(shop.out) if isinstance(event, LostAtStore)] == lost


@pytest.mark.rows("P-410")
def test_a_gap_that_was_filled_is_not_asked_for_with_others() -> None:
    """The transport filled one of two gaps of one age."""
    config = ReceiverConfig("topic", LIFE, "me:1", otr=OtrTimes(DELAY_NS))
    machine, out = Recovery.of(config), list[fx.Effect]()
    machine.begin(0, otr=True)
    machine.look([(10, 16), (20, 22)], 0)
    machine.got(10, 16)
    machine.handle_timeout(DELAY_NS, may_give_up=True)
    machine.issue([Target("store:1", 50)], DELAY_NS, out)
    asked = [
        (message.first, message.last) for _, message in sends(drain(out)) if isinstance(message, RetransmitRequest)
    ]
    assert asked == [(20, 21)]


def test_requests_to_an_older_life_are_not_served() -> None:
    """A receiver tells messages by life and number: those of the new life are not what its request meant."""
    shop, serving, out = RepositoryDriver(), RetransmissionService(rate=100), list[fx.Effect]()
    shop.data(0, 10)
    serving.on_request(RetransmitRequest(Role.RECEIVER, LIFE, 50, 9, 0, 4, "receiver:1"), shop.machine, out)
    shop.machine.begin_life(LIFE + 1, "source:1", 0)
    shop.inform(8, 7, incarnation=LIFE + 1)
    assert shop.machine.available(0, 5) == [(0, 5)]
    serving.serve({50: shop.machine}, SECOND, out)
    assert out == []
    assert (serving.queued, serving.served) == (0, 0)


@pytest.mark.rows("P-234", "P-235")
def test_the_last_reg_id_is_followed_by_the_first() -> None:
    machine = ClientTable(REPOSITORY_CONFIG, Seeded(1))
    machine.next_reg_id = LAST_REG_ID
    assert [machine.add(register(reg_id=0), 0).client.reg_id for _ in range(2)] == [LAST_REG_ID, 1]
