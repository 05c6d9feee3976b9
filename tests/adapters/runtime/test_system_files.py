"""The files of the system."""

import os
from pathlib import Path

import pytest

from stablecast.runtime import machine


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may own another's link")
@pytest.mark.parametrize("owner", [0, 65_534])
def test_root_follows_only_its_own_links_to_a_log(owner: int, tmp_path: Path) -> None:
    """Containers link a log to standard output. A file that is written from its beginning is no log."""
    target, link = tmp_path / "target", tmp_path / "log"
    link.symlink_to(target)
    os.lchown(link, owner, owner)
    if owner:
        with pytest.raises(OSError, match="symbolic links"):
            machine.files.file(link, "ab", 0)
    else:
        machine.files.file(link, "ab", 0).close()
    assert target.exists() == (owner == 0)
    machine.files.file(link, "wb", 0).close()
