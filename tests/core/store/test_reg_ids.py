"""RegIDs of the store's choice."""

import pytest

from stablecast.core.protocol.messages import Registered
from tests.core.drivers import StoreDriver
from tests.core.samples import register


@pytest.mark.rows("P-234")
def test_a_source_that_lets_the_store_choose_and_asks_again_is_one() -> None:
    """T6: the answer was not there within the interval; both requests get the same one."""
    driver = StoreDriver()
    for _ in range(2):
        driver.hear(register(reg_id=0, reply_to="source:1"))
    driver.sync()
    (chosen,) = driver.machine.clients.records
    assert chosen
    assert {answer.reg_id for _, answer in driver.sent(Registered)} == {chosen}
    driver.hear(register(reg_id=0, reply_to="source:2", incarnation=9))
    assert len(driver.machine.clients.records) == 2, "another life is another source"
