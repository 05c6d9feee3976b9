"""Every configuration and command line that the two documents print works, or stands in a list with the reason."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.core.protocol.quorum import Intergroup, Intragroup
from stablecast.core.protocol.settings import StoreBehavior
from tests.support.guide import GUIDE, placed, printed
from tests.support.program import outcome, running
from tests.support.tree import ROOT

CHAPTER = ROOT / "spec" / "configuration.md"
SNIPPETS = {
    "application.xml": "tests/e2e/test_guide_configuration.py",
    "lbm4store.cfg": "tests/e2e/test_guide_configuration.py",
    "nat_inside.cfg": "tests/e2e/test_guide_configuration.py",
    "nat_outside.cfg": "tests/e2e/test_guide_configuration.py",
    "one_store.cfg": "tests/examples/test_snippets.py",
    "option_types.xml": "tests/examples/test_snippets.py",
    "receiver_paced.cfg": "tests/e2e/test_guide_configuration.py",
    "receiver_paced_store.xml": "tests/e2e/test_guide_configuration.py",
    "round_robin.cfg": "tests/examples/test_snippets.py",
    "service_address.cfg": "tests/e2e/test_guide_configuration.py",
    "service_name.cfg": "tests/examples/test_snippets.py",
    "service_names.cfg": "tests/examples/test_snippets.py",
    "store.xml": "tests/examples/test_snippets.py",
    "store_name.cfg": "tests/examples/test_snippets.py",
    "store_names.xml": "tests/examples/test_snippets.py",
    "three_groups.cfg": "tests/examples/test_snippets.py",
}
"""Each printed configuration, and the test that runs it."""
NOT_RUN = {
    "the command of the Windows service, with its actions": "it concerns another operating system",
    "the tool for queue logs, and its configuration": "there are no queues; `stablecast trace` has such tools",
    "the XML of the relay with address translation": "the stored copy of the document has lost it; "
    "`tests/e2e/test_namespaces.py` runs one that follows its text",
    "calls that set options in C": "`options` of `Context.source` and `Context.receiver` set them",
}
"""Each printed thing that is not run, and the reason."""
BLOCK = re.compile(r"(<!-- snippets -->\n).*?(<!-- end -->)", re.DOTALL)


def render() -> str:
    lines = ["", "| printed configuration | test |", "|---|---|"]
    lines += [f"| `tests/fixtures/guide/{name}` | `{test}` |" for name, test in SNIPPETS.items()]
    lines += ["", "| not run | reason |", "|---|---|"]
    lines += [f"| {what} | {reason} |" for what, reason in NOT_RUN.items()]
    return "\n".join(lines) + "\n\n"


def test_each_printed_configuration_is_run_by_a_test() -> None:
    """STABLECAST_REWRITE=1 writes the tables of the chapter anew."""
    assert {path.name for path in GUIDE.iterdir()} == set(SNIPPETS)
    for name, test in SNIPPETS.items():
        assert f'"{name}"' in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not run {name}"
    text = CHAPTER.read_text(encoding="utf-8")
    wished = BLOCK.sub(lambda found: f"{found[1]}{render()}{found[2]}", text)
    if os.environ.get("STABLECAST_REWRITE") == "1":
        CHAPTER.write_text(wished, encoding="utf-8")
    assert CHAPTER.read_text(encoding="utf-8") == wished


@pytest.mark.parametrize(
    ("name", "stores", "sizes"),
    [
        ("one_store.cfg", ["10.29.3.16:14567"], (1,)),
        ("store_name.cfg", ["NEWYORK-1"], (1,)),
        ("round_robin.cfg", ["10.29.3.77:15313", "10.29.3.76:16313", "10.29.3.75:17313"], (3,)),
        ("three_groups.cfg", [], (5, 3, 5)),
    ],
)
@pytest.mark.rows("P-504", "P-201")
async def test_the_printed_stores_are_those_of_a_source(name: str, stores: list[str], sizes: tuple[int, ...]) -> None:
    async with Context.from_config(GUIDE / name, environment=False) as context:
        assert not context.configuration.notices
        source = await context.source("orders", wait=False)
        found = [spec.address or spec.name for spec in source.config.stores]
        assert source.config.groups.sizes == sizes
        if name == "three_groups.cfg":
            assert [spec.group for spec in source.config.stores] == [0] * 5 + [1] * 3 + [2] * 5
            groups = source.config.groups
            assert (groups.intragroup, groups.intergroup) == (Intragroup.QUORUM, Intergroup.ALL_ACTIVE)
            assert source.config.behavior is StoreBehavior.QC
        else:
            assert found == stores
        await asyncio.sleep(0)
    status, _, _ = outcome("check", GUIDE / name)
    assert status == 0


@pytest.mark.parametrize(
    ("name", "services"),
    [
        ("service_name.cfg", ("test1.example.com:12000",)),
        ("service_names.cfg", ("test1.example.com:12000", "test2.example.com:12000")),
    ],
)
@pytest.mark.rows("T-411")
async def test_the_printed_services_are_those_of_a_context(name: str, services: tuple[str, ...]) -> None:
    async with Context.from_config(GUIDE / name, environment=False) as context:
        assert context.resolution.services == services
        context.receiver("orders")
        assert [wait.topic for wait in context.unresolved()] in ([], ["orders"])


@pytest.mark.rows("P-848")
def test_the_printed_store_runs_where_it_is(tmp_path: Path) -> None:
    """Unchanged, in an empty directory, as the guide starts it; it validates first."""
    path = placed("store.xml", tmp_path)
    assert outcome("store", "-v", path)[0] == 0
    with running("store", "store.xml", "--new", directory=tmp_path) as daemon:
        ready = daemon.line()  # The address is that of the first interface which is not loopback, if there is one.
        assert re.fullmatch(r'store "test-store" ready to accept registrations at [0-9.]+:14567', ready)
        assert daemon.line() == "monitor at http://0.0.0.0:15304"
        assert (tmp_path / "stored.pid").read_text(encoding="utf-8").strip() == str(daemon.process.pid)
        daemon.interrupt(signal.SIGTERM)
        assert daemon.end()[0] == 0
    assert "[INFO] version: " in (tmp_path / "stored.log").read_text(encoding="utf-8")


@pytest.mark.rows("P-845")
def test_the_printed_types_of_options_need_their_ends(tmp_path: Path) -> None:
    """The guide leaves options open and the daemon out: that is no XML. Closed and completed, it is a store."""
    path = placed("option_types.xml", tmp_path)
    status, _, err = outcome("store", "-v", path)
    assert (status, "option_types.xml:" in err) == (1, True)
    closed = re.sub(r"(<option [^>]*[^/])>", r"\1/>", printed("option_types.xml"))
    closed = closed.removeprefix('<?xml version="1.0"?>\n')
    path.write_text(f'<ume-store version="1.2"><daemon><log>a.log</log></daemon>{closed}</ume-store>', encoding="utf-8")
    status, out, err = outcome("store", "-v", path)
    assert (status, out) == (0, f"{path} is valid\n")
    assert "transport_lbtrm_rate_interval, transport: options of sources have effect in proxies only" in err


@pytest.mark.parametrize("interface", ["0.0.0.0", "10.29.3.16", "10.29.3.16/25"])
@pytest.mark.rows("P-201", "P-810")
def test_the_printed_names_of_stores_are_valid(interface: str, tmp_path: Path) -> None:
    """A range needs an interface of this host in it; the error names those that there are."""
    inside = printed("store_names.xml").replace("0.0.0.0", interface)
    path = tmp_path / "store_names.xml"
    path.write_text(
        f'<ume-store version="1.2"><daemon><log>a</log></daemon><stores>{inside}</stores></ume-store>', encoding="utf-8"
    )
    status, _, err = outcome("store", "-v", path)
    if "/" in interface:
        assert (status, "no interface of this host matches '10.29.3.16/25'" in err) == (1, True)
    else:
        assert status == 0


@pytest.mark.parametrize("option", ["-d", "--dump-dtd", "-h", "--help"])
@pytest.mark.rows("P-702", "P-705")
def test_the_printed_command_lines_of_the_daemon(option: str) -> None:
    """With `stablecast store` for the name of the daemon; `-f` and `-v` have tests of their own."""
    status, out, _ = outcome("store", option)
    assert status == 0
    assert ("<!ELEMENT ume-store" in out) is option.startswith(("-d", "--d"))
