"""Functions of Python act on the host of a program of a world, and as ever in all other code."""

import asyncio
import atexit
import builtins
import concurrent.futures
import datetime as dt
import logging
import multiprocessing
import os
import queue
import random
import secrets
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
import uuid
from collections.abc import Callable
from datetime import datetime as imported_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time as imported_time
from typing import Any, ClassVar

import pytest

from tests.adapters.lab.world.scene import scene

PORT = 8_000
BEGIN = dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
"""Wall clock of a host when a world begins."""

WIDTH = dt.timedelta(milliseconds=1)


def run(main: Callable[[], Any], seed: int = 1) -> Any:
    """Run a function as a program; return its result."""
    with scene(seed) as world:
        (process,) = world.run_programs(host=main)
        return process.status


# ------------------------------------------------------------------------------------------------------------- clocks

CLOCKS: dict[str, Callable[[], dt.datetime]] = {
    "time": lambda: dt.datetime.fromtimestamp(time.time(), dt.UTC),
    "imported time": lambda: dt.datetime.fromtimestamp(imported_time(), dt.UTC),
    "time_ns": lambda: dt.datetime.fromtimestamp(time.time_ns() / 1e9, dt.UTC),
    "now": lambda: dt.datetime.now().astimezone(),
    "now of a zone": lambda: imported_datetime.now(dt.UTC),
    "utcnow": lambda: dt.datetime.utcnow().replace(tzinfo=dt.UTC),  # noqa: DTZ003 - programs call it
    "today": lambda: dt.datetime.today().astimezone(),
    "gmtime": lambda: dt.datetime(*time.gmtime()[:6], tzinfo=dt.UTC) + dt.timedelta(microseconds=25),
    "clock_gettime": lambda: dt.datetime.fromtimestamp(time.clock_gettime(time.CLOCK_REALTIME), dt.UTC),
}


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.filterwarnings("ignore:.*utcnow:DeprecationWarning")
def test_the_wall_clock_is_that_of_the_host(name: str) -> None:
    assert BEGIN <= run(CLOCKS[name]) < BEGIN + WIDTH
    assert CLOCKS[name]() > dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def test_dates_keep_their_class() -> None:
    class Derived(dt.datetime):
        pass

    found = run(lambda: (dt.datetime.now(), Derived.now(dt.UTC), dt.date.today()))  # noqa: DTZ005, DTZ011
    assert [type(one) for one in found] == [dt.datetime, Derived, dt.date]
    assert type(dt.datetime.now(dt.UTC)) is dt.datetime


def test_a_host_has_its_own_clocks() -> None:
    with scene() as world:
        slow, fast = world.host("slow"), world.host("fast")
        fast.clock.leap(3_600 * 10**9)
        fast.clock.drift(100_000)

        def main() -> tuple[float, float]:
            begin = time.monotonic()
            time.sleep(10)
            return time.monotonic() - begin, time.time()

        one, other = world.call(main, slow.name), world.call(main, fast.name)
        world.finish(other)
        assert not one.gone
        world.finish(one)
        assert (one.status[0], other.status[0]) == (pytest.approx(10, abs=0.01), pytest.approx(10, abs=0.01))
        assert other.status[1] - one.status[1] == pytest.approx(3_600, abs=2)


def test_a_sleep_takes_virtual_time() -> None:
    def main() -> list[float]:
        clocks = (time.monotonic, time.perf_counter, time.time, time.process_time)
        begin = [clock() for clock in clocks]
        time.sleep(86_400)
        return [clock() - since for clock, since in zip(clocks, begin, strict=True)]

    assert run(main) == [pytest.approx(86_400, abs=0.001)] * 4


def test_log_records_have_virtual_times() -> None:
    record = run(lambda: logging.LogRecord("name", logging.INFO, "file", 1, "text", None, None))
    assert record.created == pytest.approx(BEGIN.timestamp(), abs=0.001)


# ------------------------------------------------------------------------------------------------------------ entropy

ENTROPY: dict[str, Callable[[], Any]] = {
    "random": lambda: [random.random(), random.randrange(10**9), random.sample(range(100), 5)],
    "generators": lambda: random.Random().getrandbits(64),
    "SystemRandom": lambda: random.SystemRandom().getrandbits(64),
    "urandom": lambda: os.urandom(16),
    "secrets": lambda: (secrets.token_bytes(16), secrets.token_urlsafe(), secrets.randbelow(10**9)),
    "uuid4": lambda: uuid.uuid4(),  # noqa: PLW0108 - looked up in the world
    "uuid1": lambda: [uuid.uuid1() for _ in range(3)],
}


@pytest.mark.parametrize("name", ENTROPY)
def test_the_seed_decides_entropy(name: str) -> None:
    assert run(ENTROPY[name], 1) == run(ENTROPY[name], 1)
    assert run(ENTROPY[name], 1) != run(ENTROPY[name], 2)
    assert ENTROPY[name]() != ENTROPY[name]()


def test_a_program_may_seed_its_functions_without_effect_on_others() -> None:
    def main() -> tuple[float, bytes]:
        random.seed(7)
        return random.random(), os.urandom(8)

    with scene() as world:
        one, other = world.run_programs(one=main, other=main)
        assert one.status[0] == other.status[0] == random.Random(7).random()
        assert one.status[1] != other.status[1]


def test_identifiers_are_in_order_and_name_their_host() -> None:
    with scene() as world:
        found = world.run_programs(**{name: lambda: [uuid.uuid1() for _ in range(50)] for name in ("one", "other")})
        nodes = []
        for process in found:
            assert [one.time for one in process.status] == sorted({one.time for one in process.status})
            nodes.append({one.node for one in process.status})
        assert nodes[0].isdisjoint(nodes[1])


# ------------------------------------------------------------------------------------------------------------ threads


def test_threads_share_a_queue() -> None:
    def main() -> list[tuple[int, str]]:
        tasks, results = queue.Queue[int](2), list[tuple[int, str]]()

        def work() -> None:
            while (number := tasks.get()) >= 0:
                time.sleep(0.1)
                results.append((number, threading.current_thread().name))

        threads = [threading.Thread(target=work, name=f"worker {number}") for number in range(3)]
        for thread in threads:
            thread.start()
        for number in [*range(20), -1, -1, -1]:
            tasks.put(number)
        for thread in threads:
            thread.join()
            assert not thread.is_alive()
        return results

    found = run(main)
    assert sorted(number for number, _ in found) == list(range(20))
    assert {name for _, name in found} == {"worker 0", "worker 1", "worker 2"}
    assert run(main) == found


def test_a_pool_works_and_waits() -> None:
    def main() -> Any:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(lambda number=number: (time.sleep(number), number)[1]) for number in (3, 1, 2)]
            done = [future.result() for future in concurrent.futures.as_completed(futures)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            squares = list(pool.map(lambda number: (time.sleep(1), number**2)[1], range(6)))
        return done, squares, round(time.monotonic() - begin, 2)

    assert run(main) == ([1, 3, 2], [0, 1, 4, 9, 16, 25], 3.0)


def test_what_threads_wait_for() -> None:
    def main() -> list[Any]:
        event, found = threading.Event(), list[Any]()
        condition, barrier = threading.Condition(), threading.Barrier(2)
        threading.Timer(2, event.set).start()
        found += [event.wait(1), event.wait(5), round(time.monotonic())]

        def notify() -> None:
            barrier.wait()
            time.sleep(1)
            with condition:
                condition.notify()

        threading.Thread(target=notify).start()
        barrier.wait()
        with condition:
            found += [condition.wait(0.5), condition.wait(5)]
        lock, again = threading.Lock(), threading.RLock()
        with again, again, lock:
            found += [lock.acquire(timeout=1), lock.locked(), round(time.monotonic(), 1)]
        return found

    assert run(main) == [False, True, 3, False, True, False, True, 5.0]


def test_each_thread_has_its_own_local_objects() -> None:
    def main() -> dict[int, int]:
        local, found = threading.local(), dict[int, int]()

        def work(number: int) -> None:
            local.number = number
            time.sleep(1)
            found[number] = local.number

        threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not hasattr(local, "number")
        return found

    assert run(main) == {number: number for number in range(5)}


def test_a_program_ends_after_its_threads_unless_they_are_daemons() -> None:
    with scene() as world:

        def main() -> None:
            threading.Thread(target=lambda: (time.sleep(5), world.note("thread"))).start()
            threading.Thread(target=lambda: (time.sleep(50), world.note("daemon")), daemon=True).start()
            pool = concurrent.futures.ThreadPoolExecutor()
            pool.submit(lambda: (time.sleep(7), world.note("pool")))
            atexit.register(world.note, "exit")
            atexit.unregister(print)
            time.sleep(1)

        world.run_programs(host=main)
        assert world.log == [(5.0, "thread"), (7.0, "pool"), (7.0, "exit")]


def test_a_killed_process_unlocks_nothing_and_a_new_one_has_new_locks() -> None:
    with scene() as world:
        locks: list[Any] = []

        def main() -> bool:
            if not locks:
                locks.append(threading.Lock())
            taken: bool = locks[0].acquire(timeout=1)
            time.sleep(10)
            return taken

        first = world.call(main, "host")
        world.pass_time(2)
        first.kill()
        second = world.call(main, "host")
        world.finish(second)
        assert second.status is True
        assert locks[0].acquire(blocking=False)


def test_the_error_of_a_thread_is_printed() -> None:
    with scene() as world:

        def main() -> str:
            thread = threading.Thread(target=lambda: 1 // 0)
            thread.start()
            thread.join()
            threading.Thread(target=sys.exit).start()
            return "goes on"

        (process,) = world.run_programs(host=main)
        assert process.status == "goes on"
        assert process.output[-1].startswith("ZeroDivisionError")


def test_threads_of_an_event_loop() -> None:
    def main() -> tuple[int, str]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()

        async def job() -> int:
            await asyncio.sleep(5)
            return 7

        found = asyncio.run_coroutine_threadsafe(job(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        return found, type(loop).__name__

    assert run(main) == (7, "SimulatedEventLoop")


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
