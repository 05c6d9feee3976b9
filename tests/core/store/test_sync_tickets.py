"""Tickets: everything up to the synced one is due, once and in order."""

from stablecast.core.store.sync_tickets import PendingSync, SyncTickets


def test_waiting_answers_are_due_in_the_order_written() -> None:
    tickets = SyncTickets()
    for reg_id in (1, 2, 3):
        tickets.wait(PendingSync(tickets.draw(), reg_id, 7, generation=0))
    assert [waiting.reg_id for waiting in tickets.due(2)] == [1, 2]
    assert tickets.due(2) == []
    assert [waiting.reg_id for waiting in tickets.due(9)] == [3]


def test_neighbouring_runs_of_one_life_come_back_as_one() -> None:
    tickets = SyncTickets()
    for reg_id, incarnation, first, stop in (
        (1, 7, 0, 5),
        (1, 7, 5, 9),
        (1, 7, 10, 12),
        (2, 7, 12, 13),
        (2, 8, 13, 14),
    ):
        tickets.wait(PendingSync(tickets.draw(), reg_id, incarnation, first=first, stop=stop))
    assert [(due.ticket, due.first, due.stop) for due in tickets.due(9)] == [
        (2, 0, 9),
        (3, 10, 12),
        (4, 12, 13),
        (5, 13, 14),
    ]


def test_a_registration_parts_the_runs_around_it() -> None:
    """A grant says what is synced before it: what comes behind must not be told first."""
    tickets = SyncTickets()
    tickets.wait(PendingSync(tickets.draw(), 1, 7, first=0, stop=5))
    tickets.wait(PendingSync(tickets.draw(), 1, 7, generation=3))
    tickets.wait(PendingSync(tickets.draw(), 1, 7, first=5, stop=9))
    assert [due.generation for due in tickets.due(9)] == [-1, 3, -1]


def test_it_is_known_whether_a_report_will_come() -> None:
    tickets = SyncTickets()
    told = [tickets.pending]
    tickets.draw()
    told.append(tickets.pending)
    tickets.due(1)
    assert [*told, tickets.pending] == [False, True, False]


def test_no_ticket_returns_cut_messages() -> None:
    """Only of this source, from the cut on, and no grants."""
    tickets = SyncTickets()
    tickets.draw_for(1, 7, 0, 5)
    tickets.draw_for(2, 7, 5, 9)
    tickets.wait(PendingSync(tickets.draw(), 1, 8, generation=3))
    tickets.draw_for(1, 7, 6, 9)
    tickets.drop(1, 3)
    tickets.draw_for(1, 7, 3, 9)
    due = [(due.reg_id, due.generation, due.first, due.stop) for due in tickets.due(9)]
    assert due == [(1, -1, 0, 3), (2, -1, 5, 9), (1, 3, 0, 0), (1, -1, 6, 6), (1, -1, 3, 9)]
