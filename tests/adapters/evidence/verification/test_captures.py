"""`stablecast verify CAPTURE...`: verdicts for people and machines, and one sentence for what cannot be judged."""

import json
import shutil
from pathlib import Path

import pytest

from stablecast.evidence.capture.judge import judge
from stablecast.evidence.rules.judges import CAPTURES
from tests.adapters.evidence.capture.judge.wire_session import STORES, World, settled
from tests.adapters.evidence.trace.traced import TracedWorld, play, tapping
from tests.support import captures
from tests.support.left_out import NO_SPARK
from tests.support.program import outcome


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return settled(World()).talk.write(tmp_path / "clean.pcap")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    world = settled(World())
    world.ack(1, 39, 4_000)
    world.wait(2_000)
    world.send(40)
    return world.talk.write(tmp_path / "bad.pcap")


def test_people_read_verdicts_and_reasons(clean: Path, bad: Path) -> None:
    status, out, err = outcome("verify", str(clean))
    assert (status, err) == (0, "")
    checks = CAPTURES.checks["P7"]
    assert f"{clean}: P7 AckOfSent of {STORES[0]}: fine, {checks} (40 times)" in out
    assert f"{clean}: 0 broken, 0 cannot tell, 9 fine" in out
    status, out, err = outcome("verify", str(clean), str(bad))
    assert (status, err) == (1, "")
    assert "broken: number 4000 is acknowledged, and the newest that was sent is 40" in out


def test_machines_read_json(bad: Path) -> None:
    status, out, _ = outcome("verify", "--json", str(bad))
    found = json.loads(out)
    assert (status, found["broken"], found["file"]) == (1, 1, str(bad))
    assert {"rule": "P7", "whose": STORES[1], "verdict": "broken", "times": 41} in found["verdicts"]
    assert [one["rule"] for one in found["findings"]] == ["P7"]


def test_progress_is_reported(clean: Path) -> None:
    heard: list[tuple[str, int]] = []
    judge(clean, watch=lambda what, offset: heard.append((what, offset)))
    assert heard == [("survey", 24), ("judge", 24)]


def test_ports_of_ones_own(tmp_path: Path) -> None:
    world = World()
    world.begin()
    world.send(0, 1)
    path = world.talk.write(tmp_path / "a.pcap")
    assert outcome("verify", str(path), "--port", "lbttcp=14371")[0] == 0
    status, _, err = outcome("verify", str(path), "--port", "nothing")
    assert status == 2
    assert err.startswith("stablecast: 'nothing' is not kind=port or kind=low-high with one of the kinds lbmr, ")


def test_a_capture_without_judged_traffic_gets_a_sentence(tmp_path: Path, clean: Path) -> None:
    foreign = captures.pcap(tmp_path / "foreign.pcap", [])
    status, _, err = outcome("verify", str(foreign))
    assert (status, err) == (
        2,
        f"stablecast: nothing in {foreign} can be judged, by its ports and its bytes; --port may help\n",
    )
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(clean.read_bytes()[:-5])
    status, _, err = outcome("verify", str(cut))
    assert (status, err.count("\n")) == (2, 1)
    assert "ends in the middle of frame" in err


def test_frames_of_a_link_that_is_not_read_are_said_to_be(tmp_path: Path, clean: Path) -> None:
    octets = bytearray(clean.read_bytes())
    octets[20:24] = (147).to_bytes(4, "little")
    path = tmp_path / "other.pcap"
    path.write_bytes(octets)
    status, _, err = outcome("verify", str(path))
    told = "its frames are of link type 147, which is not read; capture at another interface"
    assert (status, err) == (2, f"stablecast: nothing in {path} can be judged: {told}\n")


def test_a_page_and_a_table_of_captures_and_traces(tmp_path: Path, clean: Path, bad: Path) -> None:
    """The page has a timeline of each life; records in the table are frames."""
    pytest.importorskip("pyarrow", reason=NO_SPARK)
    from pyarrow import parquet  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    traces, page = tmp_path / "traces", tmp_path / "out.html"
    play(TracedWorld(wrap=tapping(traces)))
    status, _, _ = outcome(
        "verify", str(clean), str(bad), str(traces), "--report", str(page), "--parquet", str(tmp_path / "table")
    )
    assert status == 1
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 3, "the life in the captures, and two in the traces"
    assert "number 4000 is acknowledged" in text
    assert f"store {STORES[1]}" in text
    assert "receiver 10.0.0.9:14391: consumed" in text
    (row,) = parquet.read_table(tmp_path / "table").to_pylist()
    assert (row["role"], row["endpoint"], row["rule"]) == ("store", STORES[1], "P7")
    assert row["text"] == f"frame {row['record']}: number 4000 is acknowledged, and the newest that was sent is 40"
    assert outcome("verify", str(bad), "--report", str(page))[0] == 1
    assert "cannot be decided" not in page.read_text(encoding="utf-8").lower()


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path, clean: Path) -> None:
    place = tmp_path / "none" / "out.html"
    status, _, err = outcome("verify", str(clean), "--report", str(place))
    assert (status, err) == (
        2,
        f"stablecast: {place} cannot be written: No such file or directory; name another place\n",
    )


def test_captures_and_traces_together(clean: Path, tmp_path: Path) -> None:
    """Each file is judged by its own rules; the gravest exit status counts."""
    traces = tmp_path / "traces"
    play(TracedWorld(wrap=tapping(traces)))
    status, out, _ = outcome("verify", str(clean), str(traces))
    assert status == 0
    assert "9 fine" in out
    assert "0 violations" in out
    shutil.copy(clean, clean.with_name("copy"))
    assert outcome("verify", str(clean.with_name("copy")))[0] == 0
