"""Seeds with lost and damaged disks that found a defect of a store or of a judge stay clean."""

import pytest

from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import draw

WIPED = {
    1649: "a run that exceeds a limit of the memory was dropped again and again, and never came back (S3)",
    1021: "a group of one empty store decided against a group that was late (S2)",
    4432: "a restart within the waiting time of an empty store ended it",
    4147: "a killed store forgot which damaged messages it had (S2)",
    321: "a copy of a disk brings back what the store had released (P1)",
    2153: "nobody declared an older copy of a disk that had lost its messages before (S2)",
    3772: "a store that lost its disk does not know a store that the source named before (E8)",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", WIPED)
def test_a_seed_with_lost_disks_that_found_a_defect_is_clean(seed: int) -> None:
    assert run(draw(seed, wipe=True)).violations == ()


USUAL = {
    203825: "a refill of a tiny memory asked for void numbers two at a time (S3)",
    406638: "a late store took a session back, and the client reported what that had not delivered yet (X1)",
    407614: "a store that restarted acknowledged what its disk could not read (P1)",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", USUAL)
def test_a_usual_seed_that_found_a_defect_is_clean(seed: int) -> None:
    assert run(draw(seed)).violations == ()
