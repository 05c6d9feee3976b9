"""What the simulator found, made small: each schedule broke a rule once, and must never again."""

import pytest

from stablecast.sim.runner import run
from stablecast.sim.schedule import Act, Fault, Schedule

FOUND = {
    # A crash between a new life's resume point and its receivers' cut-backs left receivers acknowledged too far (D1).
    "half_a_resume": Schedule(
        344,
        (
            (231, 1),
            (752, 1),
            (966, 1),
            (1141, 1),
            (1681, 15),
            (1692, 1),
            (1733, 1),
            (1844, 1),
            (2849, 8),
            (2896, 3),
            (2909, 34),
            (2994, 1),
            (3055, 40),
        ),
        (
            Fault(1680, Act.SLOW, "store2", "receiver1", 2320, False),
            Fault(2904, Act.STALL, "source", "store1", 120, False),
            Fault(2904, Act.STALL, "source", "store2", 120, False),
            Fault(2994, Act.PART, "store0", "", 1006, True),
            Fault(2998, Act.CRASH, "source", "", 34, True),
            Fault(3328, Act.CRASH, "store2", "receiver1", 7, False),
        ),
    ),
    # A replaced life of the source woke up after its successor's end and had that one's stable messages cut (S3).
    "replaced_life_returns": Schedule(
        155,
        ((3766, 1),),
        (
            Fault(458, Act.TAKEOVER, "source", "store1", 2448, True),
            Fault(3785, Act.CRASH, "source", "", 80, True),
        ),
    ),
    # A grant read only after its lease was over was counted on while another life held the RegID (R1).
    "late_grant": Schedule(
        1448,
        (),
        (Fault(157, Act.TAKEOVER, "source", "", 2510, True),),
    ),
    # A life came back to a store where another had registered and sent nothing: its own stable messages were cut (S3).
    "own_tail_cut": Schedule(
        1558,
        ((124, 1),),
        (
            Fault(243, Act.TAKEOVER, "source", "", 2675, True),
            Fault(506, Act.CRASH, "store1", "receiver1", 783, True),
            Fault(1765, Act.FULL, "store2", "receiver1", 814, True),
            Fault(3110, Act.CRASH, "source", "", 111, False),
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    assert run(FOUND[name]).violations == ()
