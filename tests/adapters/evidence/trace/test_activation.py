"""Environment variables decide whether, where, and how much an endpoint is traced."""

import errno
import os
from pathlib import Path

import pytest

from stablecast.core.protocol.messages import Role
from stablecast.core.protocol.settings import StoreConfig
from stablecast.core.store import StoreEndpoint
from stablecast.evidence.trace.activation import VARIABLE, recorder
from stablecast.evidence.trace.errors import TraceError
from stablecast.evidence.trace.trace_recorder import KEEP, LIMIT, rolling
from stablecast.evidence.trace.writer import ROLLING
from tests.support.machine import replace


@pytest.fixture
def store() -> StoreEndpoint:
    return StoreEndpoint.create(StoreConfig("s:1", 1))


def test_the_environment_names_the_directory(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert recorder(Role.STORE, "a", store) is None
    monkeypatch.setenv(VARIABLE, "")
    assert recorder(Role.STORE, "a", store) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    trace = recorder(Role.STORE, "a", store)
    assert trace is not None
    trace.close()
    assert trace.path.parent == tmp_path


def test_the_environment_says_how_much_of_a_trace_stays(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEEP, raising=False)
    monkeypatch.delenv(LIMIT, raising=False)
    assert rolling() == ROLLING
    assert 0 < ROLLING.limit_bytes <= 1 << 30
    monkeypatch.setenv(KEEP, "3")
    monkeypatch.setenv(LIMIT, "1000000")
    trace = recorder(Role.STORE, "a", store, tmp_path)
    assert trace is not None
    assert (trace._writer._rolling.keep, trace._writer._rolling.limit_bytes) == (3, 1_000_000)
    trace.close()


@pytest.mark.parametrize(("variable", "unit"), [(KEEP, "files"), (LIMIT, "bytes")])
def test_environment_variables_must_be_numbers(
    tmp_path: Path, store: StoreEndpoint, monkeypatch: pytest.MonkeyPatch, variable: str, unit: str
) -> None:
    monkeypatch.setenv(variable, "many")
    with pytest.raises(TraceError, match=f"{variable} should be a number of {unit}, it is 'many'"):
        recorder(Role.STORE, "a", store, tmp_path)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES])
def test_an_endpoint_without_a_free_descriptor_does_without_a_trace(
    tmp_path: Path,
    store: StoreEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    replace(monkeypatch, "files", open=refuse)
    if number == errno.EMFILE:
        assert recorder(Role.STORE, "a", store, tmp_path) is None
        assert "Too many open files" in capsys.readouterr().err
    else:
        with pytest.raises(TraceError, match="Permission denied"):
            recorder(Role.STORE, "a", store, tmp_path)
