"""A program of a world has its own environment, number, signals, output, sockets and end."""

import asyncio
import builtins
import concurrent.futures
import multiprocessing
import os
import select
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time as imported_time
from typing import Any, ClassVar

import pytest

from stablecast.lab.world.world import prepared
from tests.adapters.lab.world.scene import scene

PORT = 8_000


def run(main: Callable[[], Any], seed: int = 1) -> Any:
    """Run a function as a program; return its result."""
    with scene(seed) as world:
        (process,) = world.run_programs(host=main)
        return process.status


# -------------------------------------------------------------------------------------------------------- the process


def test_a_process_has_its_own_environment() -> None:
    with scene() as world:
        world.host("host").environment["GIVEN"] = "1"

        def main() -> Any:
            before = dict(os.environ)
            os.environ["NEW"] = "2"
            del os.environ["GIVEN"]
            with pytest.raises(KeyError, match="GIVEN"):
                os.environ["GIVEN"]
            return before, os.getenv("NEW"), os.environ.get("PATH"), len(os.environ)

        assert world.run_programs(host=main)[0].status == ({"GIVEN": "1"}, "2", None, 1)
        assert world.run_programs(host=main)[0].status[0] == {"GIVEN": "1"}
    assert "NEW" not in os.environ


def test_a_process_has_a_number_and_a_host() -> None:
    with scene() as world:

        def main() -> Any:
            return os.getpid(), socket.gethostname(), os.uname().nodename, os.cpu_count()

        first, second = world.run_programs(one=main, other=main)
        assert (first.status[1:], second.status[1:]) == (("one", "one", 2), ("other", "other", 2))
        assert world.run_programs(one=main)[0].status[0] != first.status[0]
    assert os.getpid() > 2


def test_signals_reach_their_handlers_in_the_main_thread() -> None:
    def main() -> list[Any]:
        seen: list[Any] = []

        def on_signal(number: int, frame: Any) -> None:
            seen.append((number, threading.current_thread().name, round(time.monotonic())))

        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
        signal.signal(signal.SIGUSR1, on_signal)
        assert signal.getsignal(signal.SIGUSR1) is on_signal
        os.kill(os.getpid(), signal.SIGUSR1)
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        time.sleep(5)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(ProcessLookupError):
            os.kill(4_711, 0)
        return [*seen, round(time.monotonic())]

    usr1 = signal.SIGUSR1
    assert run(main) == [(usr1, "MainThread", 1), (usr1, "MainThread", 2), 6]


def test_a_process_may_kill_itself_or_another() -> None:
    with scene() as world:

        def victim() -> None:
            try:
                time.sleep(100)
            finally:
                world.note("finally")

        def killer(number: int) -> None:
            try:
                os.kill(number, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                world.note("finally")

        one = world.call(victim, "host")
        world.pass_time(1)
        other = world.call(lambda: killer(one.number), "host")
        world.finish(other)
        assert one.gone
        assert world.log == []


@pytest.mark.parametrize(("leave", "status"), [(lambda: os._exit(3), 3), (lambda: sys.exit(4), 4)])
def test_the_end_of_a_process(leave: Callable[[], None], status: int) -> None:
    seen = []

    def main() -> None:
        try:
            leave()
        finally:
            seen.append("finally")

    with scene() as world:
        (process,) = world.run_programs(host=main)
        assert process.status == status
        assert seen == ([] if status == 3 else ["finally"])


def test_output_is_kept_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        print("one", end=" ")
        print("line")
        print("error", file=sys.stderr)
        sys.stdout.writelines(["a\n", "b\n"])
        sys.stdout.flush()
        sys.stdout.buffer.write(b"bytes\n")

    with scene() as world:
        (process,) = world.run_programs(host=main)
        assert process.output == ["one line", "error", "a", "b", "bytes"]
        print("outside")
    assert capsys.readouterr().out == "outside\n"


REFUSED: dict[str, Callable[[], object]] = {
    "a subprocess": lambda: subprocess.run(["true"], check=False),
    "os.fork": lambda: os.fork(),  # noqa: PLW0108 - looked up in the world
    "os.system": lambda: os.system("true"),
    "multiprocessing": lambda: multiprocessing.Process(target=print).start(),
    "a process pool": concurrent.futures.ProcessPoolExecutor,
    "a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "a socket for a descriptor": lambda: socket.socket(fileno=3),
    "select.epoll": lambda: select.epoll(),  # noqa: PLW0108 - looked up in the world
    "TLS on blocking sockets": lambda: ssl.create_default_context().wrap_socket(socket.socket(), server_hostname="x"),
    "signal.alarm": lambda: signal.alarm(1),
    "standard input": lambda: builtins.input(),  # noqa: PLW0108 - looked up in the world
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_things_are_refused_by_a_sentence(what: str) -> None:
    def main() -> str:
        with pytest.raises(NotImplementedError) as caught:
            REFUSED[what]()
        return str(caught.value)

    assert run(main).startswith(f"a world does not simulate {what}: ")


# ------------------------------------------------------------------------------------------------------------ sockets


class Handler(BaseHTTPRequestHandler):
    """A page that names its path."""

    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_blocking_http_of_the_standard_library() -> None:
    def server() -> None:
        with ThreadingHTTPServer(("", PORT), Handler) as one:
            threading.Timer(10, one.shutdown).start()
            one.serve_forever()

    def client() -> list[bytes]:
        time.sleep(1)
        found = []
        for number in range(3):
            with urllib.request.urlopen(f"http://server:{PORT}/{number}", timeout=5) as answer:
                found.append(answer.read())
        return found

    with scene() as world:
        assert world.run_programs(server=server, client=client)[1].status == [b"/0", b"/1", b"/2"]


def test_a_simulated_socket_is_a_socket() -> None:
    def main() -> bool:
        with socket.socket() as sock:
            return isinstance(sock, socket.socket)

    assert run(main)


def test_selectors_wait_for_simulated_sockets() -> None:
    def main() -> list[Any]:
        one, other = socket.socketpair()
        threading.Timer(1, lambda: one.send(b"x")).start()
        found: list[Any] = [select.select([other], [one], [], 0), select.select([other], [], [], 5)[0] == [other]]
        found.append(other.recv(10))
        poll = select.poll()
        poll.register(other, select.POLLIN)
        found += [poll.poll(100), round(time.monotonic(), 1)]
        with selectors.DefaultSelector() as selector:
            selector.register(other, selectors.EVENT_READ, "data")
            one.close()
            found.append([key.data for key, _ in selector.select(5)])
        return [found[0][0], found[0][1] != [], *found[1:]]

    assert run(main) == [[], True, True, b"x", [], 2.1, ["data"]]


def test_ipv6_is_not_there() -> None:
    def main() -> Any:
        with pytest.raises(OSError, match="not supported"):
            socket.socket(socket.AF_INET6)
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo("nobody", 80)
        return socket.getaddrinfo("localhost", "80", type=socket.SOCK_STREAM)[0][4]

    assert run(main) == ("127.0.0.1", 80)


def test_everything_is_as_before_afterwards() -> None:
    names = [(time, "time"), (os, "urandom"), (threading, "Lock"), (socket, "getaddrinfo"), (sys, "stdout")]
    before = [getattr(module, name) for module, name in names]
    run(lambda: None)
    assert [getattr(module, name) for module, name in names] == before
    assert imported_time is time.time
    with socket.socket() as sock, selectors.DefaultSelector() as selector:
        assert sock.fileno() < 1_000_000
        selector.register(sock, selectors.EVENT_READ)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    asyncio.run(asyncio.sleep(0))


# ------------------------------------------------------------------------------------------------ many worlds in a row


def test_worlds_in_a_row_share_their_replacements() -> None:
    """A prepared interpreter keeps the functions of worlds between two of them, and has the real ones afterwards."""

    def now() -> float:
        return time.monotonic()

    real = time.monotonic
    alone = [run(now, seed) for seed in (1, 2)]
    with prepared():
        kept = time.monotonic
        assert kept is not real
        assert abs(time.monotonic() - real()) < 60  # Outside of programs it is the clock of this machine.
        assert [run(now, seed) for seed in (1, 2)] == alone
        assert time.monotonic is kept
    assert time.monotonic is real
