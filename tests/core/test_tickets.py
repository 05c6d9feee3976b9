"""Tickets: everything up to the synced one is due, once and in order."""

from stablecast.core.tickets import Tickets, Waiting


def test_what_waits_is_due_in_the_order_written() -> None:
    tickets = Tickets()
    for reg_id in (1, 2, 3):
        tickets.wait(Waiting(tickets.draw(), reg_id, 7))
    assert [waiting.reg_id for waiting in tickets.due(2)] == [1, 2]
    assert tickets.due(2) == []
    assert [waiting.reg_id for waiting in tickets.due(9)] == [3]
