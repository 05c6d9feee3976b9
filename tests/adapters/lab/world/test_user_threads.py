"""Threads, pools and queues of Python run on the threads of a world."""

import asyncio
import atexit
import concurrent.futures
import queue
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.adapters.lab.world.scene import later, scene


def run(main: Callable[[], Any], seed: int = 1) -> Any:
    """Run a function as a program; return its result."""
    with scene(seed) as world:
        (process,) = world.run_programs(host=main)
        return process.status


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
            futures = [pool.submit(later, number, partial(int, number)) for number in (3, 1, 2)]
            done = [future.result() for future in concurrent.futures.as_completed(futures)]
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            squares = list(pool.map(lambda number: later(1, lambda: number**2), range(6)))
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
            threading.Thread(target=later, args=(5, lambda: world.note("thread"))).start()
            threading.Thread(target=later, args=(50, lambda: world.note("daemon")), daemon=True).start()
            pool = concurrent.futures.ThreadPoolExecutor()
            pool.submit(later, 7, lambda: world.note("pool"))
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


def test_a_thread_of_a_library_outside_of_the_world_is_left_alone() -> None:
    """A bridge to another runtime has threads of its own, which sleep and end while a world runs."""
    begin, done = threading.Lock(), threading.Lock()  # Locks of the machine, made before the world.
    seen: list[tuple[int, threading.Thread]] = []

    def serve() -> None:
        with begin:
            seen.append((threading.get_ident(), threading.current_thread()))
        done.release()

    def main() -> None:
        begin.release()
        assert done.acquire(timeout=20)

    begin.acquire()
    done.acquire()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    run(main)
    thread.join()
    assert seen == [(thread.ident, thread)]
