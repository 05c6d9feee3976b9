"""The chapter of the daemon names an existing test for each option."""

import re

from stablecast.config.disk_options import DISK_OPTIONS
from stablecast.config.store_options import STORE_OPTIONS, TOPIC_OPTIONS
from tests.support.tree import ROOT

ROW = re.compile(r"^\| ([\w-]+) \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", re.MULTILINE)
DAEMON = ["log", "pidfile", "uid", "gid", "tls", "lbm-config", "web-monitor", "interface", "port", "pattern",
          "restore-last", "disk-cache-directory", "disk-state-directory", "context-name", "lbm-context", "lbm-receiver",
          "lbm-source", "daemon-monitor", "publishing-interval"]  # fmt: skip


def shown() -> dict[str, tuple[str, str]]:
    text = (ROOT / "spec" / "store_daemon.md").read_text(encoding="utf-8").partition("## Options and tests")[2]
    return {name: (file, test) for name, file, test in ROW.findall(text)}


def test_every_option_has_a_test_that_shows_it() -> None:
    """The tests of the table carry the rows."""
    options = {option.name for option in (*STORE_OPTIONS, *TOPIC_OPTIONS, *DISK_OPTIONS)} | set(DAEMON)
    assert sorted(options ^ shown().keys()) == []


def test_every_test_that_is_named_is_there() -> None:
    missing = [
        f"{file}::{test}"
        for file, test in shown().values()
        if not re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []
