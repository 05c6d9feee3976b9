"""Listening sockets, and the sentences about ports that cannot be used."""

import errno
import socket
from contextlib import nullcontext
from typing import ClassVar

import pytest

from stablecast.runtime import ports
from stablecast.runtime.ports import PortError, listen, listen_in_range, listen_within
from tests.support.machine import replace
from tests.support.network import unused_port

LOCAL = "127.0.0.1"


def test_any_port() -> None:
    with listen(LOCAL, 0, "--listen") as listening:
        assert listening.getsockname()[1] > 0
        assert not listening.getblocking()


def test_a_port_in_use() -> None:
    with listen(LOCAL, 0, "--listen") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            PortError, match=f"port {port} on 127.0.0.1 is in use: stop the program .* another --listen"
        ):
            listen(LOCAL, port, "--listen")


def test_an_address_of_another_machine() -> None:
    with pytest.raises(PortError, match=r"192\.0\.2\.1 is not an address of this machine: choose another interface"):
        listen_in_range("192.0.2.1", (14371, 14390))


def test_any_other_error_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidden(socket.socket):
        def bind(self, at: object) -> None:
            raise OSError(errno.ENOBUFS, "No buffer space")

    monkeypatch.setattr(socket, "socket", Forbidden)
    with pytest.raises(PortError, match=r"cannot use port 80 on 127\.0\.0\.1: No buffer space"):
        listen(LOCAL, 80, "--listen")


def test_the_first_free_port_of_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen(LOCAL, 0, "a") as first:
        low = first.getsockname()[1]
        bound: list[int] = []
        bind = socket.socket.bind

        class Counting(socket.socket):
            def bind(self, at: object) -> None:
                assert isinstance(at, tuple)
                bound.append(at[1])
                if at[1] == low + 1:
                    raise OSError(errno.EADDRINUSE, "in use")
                bind(self, (LOCAL, 0) if at[1] == low + 2 else at)

        monkeypatch.setattr(socket, "socket", Counting)
        with listen_in_range(LOCAL, (low, low + 2)):
            assert bound == [low, low + 1, low + 2]
        with listen_in_range(LOCAL, (low, low + 1)):
            assert bound[3:] == [low, low + 1, 0]


def test_a_range_is_kept_to() -> None:
    with listen(LOCAL, 0, "test") as taken:
        port = taken.getsockname()[1]
        with listen_within(LOCAL, (port, port + 20)) as another:
            assert port < another.getsockname()[1] <= port + 20
        with pytest.raises(PortError, match=f"no port from {port} to {port} is free on {LOCAL}: widen the range"):
            listen_within(LOCAL, (port, port))


def test_a_quicker_listener_costs_one_port_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(socket.socket):
        """Is told once, when it listens, that another process does."""

        late: ClassVar[list[int]] = []

        def listen(self, backlog: int = 0) -> None:
            if not self.late:
                self.late.append(self.getsockname()[1])
                raise OSError(errno.EADDRINUSE, "in use")
            super().listen(backlog)

    low = unused_port()
    monkeypatch.setattr(socket, "socket", Late)
    with listen_in_range(LOCAL, (low, low + 5)) as listening:
        assert Late.late == [low]
        assert low < listening.getsockname()[1] <= low + 5


def test_a_process_without_descriptors_gets_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(socket, "socket", none)
    with pytest.raises(PortError, match=r"raise its limit of open files \(ulimit -n\)"):
        listen(LOCAL, 0, "--listen")


@pytest.mark.parametrize(("free", "refused"), [(ports.RESERVE + 1, False), (ports.RESERVE, True), (0, True)])
def test_the_last_descriptors_stay_for_joiners(free: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(monkeypatch, "process", free_descriptors=lambda: free)
    with pytest.raises(PortError, match="stay for joiners and stores") if refused else nullcontext():
        ports.check_reserve()
