"""Staged incidents: whole worlds with one fault each. The report names the cause in its first three lines."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.evidence.incident import command
from stablecast.evidence.incident.page import render
from stablecast.evidence.incident.report import Incident, examine
from stablecast.evidence.verification.traces import run_verify
from stablecast.lab.schedules.faults import Fault, Kind
from stablecast.lab.whole.schedule import Setup
from stablecast.lab.world.clock import EPOCH_NS
from tests.support.world_capture import WorldCapture

STORES: Final = r"stores 10\.0\.0\.4:14567 and 10\.0\.0\.5:14567"
SOURCE: Final = r"[Ss]ource orders at 10\.0\.0\.1"
READER: Final = r"receiver orders at 10\.0\.0\.2"
TIMES: Final = r"from 00:00:0\d\.\d{3} to 00:00:0\d\.\d{3}"

WITHIN: Final = "ume_retention_intragroup_stability_behavior"
ALL: Final = (("ume_store_group", "0:3"), (WITHIN, "all"))
PACED: Final = (("ume_receiver_paced_persistence", 1), ("ume_flight_size_bytes", 500_000))
MULTICAST: Final = (("transport", "lbtrm"),)


def faults(do: Kind, *who: str, span_ms: int = 2500, amount: int = 0, other: str = "") -> tuple[Fault, ...]:
    """Return the same fault at several hosts at once."""
    return tuple(Fault(1000, do, name, span_ms, other, amount) for name in who)


STAGED: Final = {
    "two stores are killed": (
        Setup(),
        faults(Kind.KILL, "store0", "store1"),
        rf"No quorum for \d\.\d s: {STORES} were down {TIMES} \(killed\)",
    ),
    "all stores are killed": (
        Setup(),
        faults(Kind.KILL, "store0", "store1", "store2"),
        rf"No quorum for \d\.\d s: stores [\d.:]+, [\d.:]+ and [\d.:]+ were down {TIMES} \(killed\)",
    ),
    "the source is cut off": (
        Setup(),
        faults(Kind.CUT, "source"),
        rf"Nothing stable for \d\.\d s: {SOURCE} was cut off from all of its stores {TIMES}",
    ),
    "two stores cannot reach the source": (
        Setup(),
        faults(Kind.MUTE, "store0", "store1", other="source"),
        rf"No quorum for \d\.\d s: (nothing reached|acknowledgements of) {STORES} .*: a path was cut",
    ),
    "two disks are slow": (
        Setup(),
        faults(Kind.SLOW, "store0", "store1", amount=800),
        rf"late by up to 1\.\d s .*: the disks of {STORES} were slow, \d+ writes took up to 1\.\d+ s, {TIMES}",
    ),
    "two stores hang": (
        Setup(),
        faults(Kind.STOP, "store0", "store1"),
        rf"No quorum for \d\.\d s: {STORES} were stopped {TIMES}",
    ),
    "an option demands all stores": (
        Setup(options=ALL),
        faults(Kind.KILL, "store2"),
        rf"2 of 3 stores did their part: the option {WITHIN} demands 3, and store 10\.0\.0\.6:14567 was down {TIMES}",
    ),
    "an option does not fit the stores": (
        Setup(options=PACED),
        (),
        r"Source orders could not register: .* refused the registration: source and store configuration are incompat",
    ),
    "datagrams and NAKs are lost": (
        Setup(options=MULTICAST),
        faults(Kind.NOISE, "receiver0", amount=60),
        rf"Delivery to {READER} late by up to \d\.\d s: messages were lost on their way and repaired; \d+ messages",
    ),
    "the source is killed": (
        Setup(),
        faults(Kind.KILL, "source"),
        rf"{SOURCE} was down for \d\.\d s, {TIMES}: it was killed; nothing of it was sent meanwhile",
    ),
    "a receiver is killed": (
        Setup(),
        faults(Kind.KILL, "receiver0"),
        rf"No delivery to {READER} for \d\.\d s: {READER} was down {TIMES} \(killed\)",
    ),
    "a receiver is cut off": (
        Setup(),
        faults(Kind.CUT, "receiver0"),
        rf"No delivery to {READER} for \d\.\d s: nothing reached {READER} {TIMES}, although it ran: a path was cut",
    ),
    "one store of three is killed": (
        Setup(),
        faults(Kind.KILL, "store0"),
        rf"Store 10\.0\.0\.4:14567 was down for \d\.\d s, {TIMES}: it was killed",
    ),
}
"""Programs, faults, and the sentence that names the cause."""

QUIET: Final = {
    "nothing": (Setup(), ()),
    "nothing over multicast": (Setup(options=MULTICAST, topics=("orders", "trades")), ()),
    "one disk of three is slow": (Setup(), faults(Kind.SLOW, "store0", amount=800)),
    "the relay is cut off": (Setup(), faults(Kind.CUT, "finder")),
    "connections break": (Setup(), faults(Kind.RESET, "source", span_ms=1)),
}
"""Worlds without a gap."""


Worlds = Callable[[str], tuple[Path, WorldCapture]]


def staged(folder: Path) -> Incident:
    """Examine the traces of a world."""
    return examine(sorted(folder.rglob("*.sct")))


@pytest.mark.parametrize("name", STAGED)
def test_the_cause_is_in_the_first_three_lines(name: str, worlds: Worlds) -> None:
    first = [*staged(worlds(name)[0]).lines()][:3]
    assert any(re.search(STAGED[name][2], line) for line in first), "\n".join(first)


@pytest.mark.parametrize("name", QUIET)
def test_worlds_without_a_gap_have_no_finding(name: str, worlds: Worlds) -> None:
    report = staged(worlds(name)[0])
    assert [one.text for one in report.happenings] == []
    assert next(report.lines()).startswith("nothing happened: ")


def asked(capsys: pytest.CaptureFixture[str], folder: Path, **more: Any) -> tuple[int, str]:
    """Return the exit status and the output of the command."""
    status = command.run(command.IncidentRequest([folder], **more))
    return status, capsys.readouterr().out


def test_the_command_and_its_page(worlds: Worlds, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Traces lie in one directory for each host. Each sentence has its records, and the log lines of that time."""
    folder, page = tmp_path / "night", tmp_path / "page.html"
    shutil.copytree(worlds("two stores are killed")[0], folder)
    near, far = (datetime.fromtimestamp(EPOCH_NS // SECOND + at, UTC).astimezone() for at in (3, 30))
    lines = [
        f"{at:%Y-%m-%d %H:%M:%S}.000 [{text}" for at, text in ((near, "WARNING] a line"), (far, "ERROR] too late"))
    ]
    (folder / "store2" / "log").write_text("\n".join(lines))
    status, out = asked(capsys, folder, page=page)
    first, _, third, *rest = out.splitlines()
    assert status == 1
    assert re.search(STAGED["two stores are killed"][2], first)
    assert third == "  2 of 3 stores must hold a message; 1 did their part"
    assert len(re.findall(r"(?:source|store)-[\w.-]+\.sct record \d+", rest[0])) >= 4
    assert rest[1] == f"  log: log: {lines[0]}"
    assert "too late" not in out
    text = page.read_text()
    assert "<h1>No quorum for 2." in text
    assert text.count("No quorum for 2.") == 1 + text.count("<title>No quorum for 2."), "its own heading says it"
    assert f"{datetime.fromtimestamp(EPOCH_NS // SECOND, UTC):%Y-%m-%d}, " in text
    status, out = asked(capsys, folder, as_json=True)
    found = json.loads(out)["findings"][0]
    assert (status, found["kind"], found["until"] - found["since"] > 2e9) == (1, "stability", True)
    assert {*found["proof"][0]} == {"file", "record", "time"}
    status, out = asked(capsys, folder, threshold=60.0)
    assert "No quorum" not in out


def test_a_page_without_findings(worlds: Worlds) -> None:
    assert "<h1>Nothing happened</h1>" in render(staged(worlds("nothing")[0]))


def test_verify_mentions_that_nothing_was_stable(worlds: Worlds, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = worlds("two stores are killed")
    assert run_verify([folder / "source"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"nothing became stable for \d\.\d s until record \d+: `stablecast incident` names the cause", out)
    run_verify([folder / "store2"])
    assert "became stable" not in capsys.readouterr().out


@pytest.mark.parametrize(("name", "told"), [("", "there are no traces"), ("missing.sct", "No such file")])
def test_wrong_arguments_get_one_sentence(
    tmp_path: Path, name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(command.IncidentRequest([tmp_path / name])) == 2
    out, err = capsys.readouterr()
    assert (out, told in err) == ("", True)
