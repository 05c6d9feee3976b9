"""Instants; the rest of the module is tested by its examples."""

import re
import time

import pytest

from stablecast.ops.monitor import figures


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_instants_are_as_exact_as_documented() -> None:
    assert figures.moment(1_700_000_000_123_456_789) == "22:13:20.123456"
    assert re.fullmatch(r"2023-11-14 22:13:20 UTC", figures.date(1_700_000_000_000_000_000))


def test_figures_are_short() -> None:
    assert [figures.short(number) for number in (0, 7.25, 12.0, 1234, 45_600, 9e15)] == [
        "0",
        "7.2",
        "12",
        "1.2k",
        "46k",
        "9000T",
    ]
    assert figures.count(1234567.4) == "1,234,567"
    assert [figures.size(octets) for octets in (999, 65_536, 1 << 64)] == ["999 B", "64.0 KiB", "16384.0 PiB"]
    assert [figures.wire(number) for number in (0xC2F, -1, (1 << 32) + 5)] == ["c2f", "-1", "5"]
    spans = [figures.span(ns * 10**9) for ns in (0.25, 12, 90, 7260, 200_000)]
    assert spans == ["250 ms", "12 s", "1 min 30 s", "2 h 1 min", "2 d 7 h"]
