"""`stablecast capture doctor`, and the advice of `verify`."""

import json
from pathlib import Path

import attrs
import pytest

from stablecast.evidence.capture.doctor import Thresholds, parse_thresholds
from stablecast.evidence.capture.files import CaptureError
from tests.adapters.evidence.capture.doctor.played_session import FIRST, first_copies, packets_of, traffic, written
from tests.support.program import outcome
from tests.support.tree import ROOT


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packets = packets_of(traffic(200, first_copies(["10.0.1.0:14360"], {*range(5, 200, 10)})))
    return written(tmp_path_factory.mktemp("captures") / "lossy.pcap", packets)


def test_findings_are_printed_with_their_packets_and_remedies(lossy: Path) -> None:
    status, out, _ = outcome("capture", "doctor", str(lossy))
    head, remedy, last = out.splitlines()
    assert status == 1
    assert head.startswith(f"{lossy}: advice [loss] {FIRST}: lost 20 of ")
    assert "(frames " in head
    assert remedy.startswith("  Single datagrams are lost")
    assert last == f"{lossy}: 1 finding"


def test_thresholds_are_options(lossy: Path) -> None:
    status, out, _ = outcome("capture", "doctor", str(lossy), "--threshold", "loss=0.2", "--json")
    assert (status, json.loads(out)) == (0, {"file": str(lossy), "advice": []})


def test_verify_shows_the_advice_beside_the_verdicts(lossy: Path) -> None:
    status, out, _ = outcome("verify", str(lossy), "--json")
    found = json.loads(out)
    assert (status, [one["code"] for one in found["advice"]], found["broken"]) == (0, ["loss"], 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--threshold", "los=1"], "there is no threshold 'los'; there are loss"),
        (["--threshold", "loss=much"], "threshold loss must be a number, not 'much'"),
        (["--threshold", "loss=-1"], "threshold loss must be at least 0, not -1"),
        (["--threshold", "loss=nan"], "threshold loss must be at least 0, not nan"),
        (["--port", "lbtrm"], "'lbtrm' is not kind=port"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments: list[str], told: str, lossy: Path) -> None:
    status, out, err = outcome("capture", "doctor", str(lossy), *arguments)
    assert (status, out) == (2, "")
    assert told in err


def test_what_cannot_be_examined_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(b"nothing")
    status, _, err = outcome("capture", "doctor", str(path))
    assert (status, err.count("\n")) == (2, 1)
    status, _, err = outcome("capture", "doctor", str(written(path, [])))
    assert (status, "nothing in" in err) == (2, True)


def test_thresholds_are_read_from_texts() -> None:
    assert parse_thresholds(["slow-recovery=5", "loss=0"]) == Thresholds(slow_recovery=5, loss=0)
    with pytest.raises(CaptureError, match="no threshold ''"):
        parse_thresholds([""])


def test_the_chapter_lists_all_thresholds() -> None:
    text = (ROOT / "spec/captures.md").read_text()
    rows = text.partition("<!-- thresholds: doctor -->")[2].partition("<!-- end -->")[0].strip().splitlines()[2:]
    assert rows == [
        f"| {field.name.replace('_', '-')} | {field.default:g} {field.metadata['unit']} | {field.metadata['meaning']} |"
        for field in attrs.fields(Thresholds)
    ]
