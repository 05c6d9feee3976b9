"""`stablecast sim` as a command."""

import json
from pathlib import Path

from tests.support.program import outcome


def test_a_seed_has_one_digest(tmp_path: Path) -> None:
    options = ("--seeds", "1", "--first", "7", "--jobs", "1", "--directory", tmp_path, "--digests")
    _, printed, _ = outcome("sim", *options)
    _, out, _ = outcome("sim", *options, "--json")
    assert f"seed 7: digest {json.loads(out)['digests']['7']}" in printed


def test_whole_worlds_refuse_to_wipe_disks() -> None:
    status, out, err = outcome("sim", "--whole", "--wipe")
    assert (status, out) == (2, "")
    assert "leave out --wipe, or --whole" in err
