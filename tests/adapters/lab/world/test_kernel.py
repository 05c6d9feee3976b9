"""The seed orders the threads of a world; a killed process does nothing more; a world that cannot go on says so."""

from functools import partial

import pytest

from stablecast.core.machine.units import SECOND
from stablecast.lab.world.kernel import Kernel, Owner, SimulatedThread, WorldError
from stablecast.lab.world.locks import SimulatedSemaphore
from tests.adapters.lab.world.scene import in_turn

HOUR = 3_600 * SECOND


class Program(Owner):
    """A process of threads only."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.threads: list[SimulatedThread] = []
        self.errors: list[BaseException] = []
        self.postponed: list[object] = []

    def start(self, target: object) -> SimulatedThread:
        assert callable(target)
        thread = SimulatedThread(self.kernel, self, f"thread {len(self.threads)}", target)
        self.threads.append(thread)
        thread.start()
        return thread

    def postpone(self, act: object) -> None:
        self.postponed.append(act)

    def resume(self) -> None:
        self.runs = True
        for act in self.postponed:
            assert callable(act)
            self.kernel.after(0, act)

    def on_error(self, thread: SimulatedThread, error: BaseException) -> None:
        self.errors.append(error)

    def finish(self) -> None:
        self.kernel.run(lambda: all(thread.ended for thread in self.threads), HOUR)


def order(seed: int) -> list[int]:
    kernel, seen = Kernel(seed), list[int]()
    program = Program(kernel)
    for number in range(6):
        program.start(in_turn(lambda: kernel.sleep(SECOND), partial(seen.append, number)))
    program.finish()
    return seen


def test_a_seed_has_one_order_and_seeds_differ() -> None:
    orders = [order(seed) for seed in range(10)]
    assert orders == [order(seed) for seed in range(10)]
    assert len({tuple(one) for one in orders}) > 5
    assert all(sorted(one) == list(range(6)) for one in orders)


def test_a_thread_blocks_until_it_is_woken_or_until_its_deadline() -> None:
    kernel = Kernel(1)
    program, seen = Program(kernel), list[tuple[bool, int]]()

    def sleeper() -> None:
        seen.append((kernel.block(kernel.now + 5 * SECOND), kernel.now // SECOND))
        seen.append((kernel.block(kernel.now + 5 * SECOND), kernel.now // SECOND))

    thread = program.start(sleeper)
    kernel.after(2 * SECOND, thread.wake)
    program.finish()
    assert seen == [(True, 3), (False, 8)]


def test_join_waits_for_the_end_or_a_time() -> None:
    kernel = Kernel(1)
    program, seen = Program(kernel), list[object]()
    slow = program.start(lambda: kernel.sleep(10 * SECOND))

    def joiner() -> None:
        slow.join(1.0)
        seen.append((slow.is_alive(), kernel.now // SECOND))
        slow.join()
        seen.append((slow.is_alive(), kernel.now // SECOND))

    program.start(joiner)
    program.finish()
    assert seen == [(True, 2), (False, 11)]


def test_nothing_of_a_killed_process_runs_until_it_is_disposed_of() -> None:
    kernel = Kernel(1)
    program, other, seen = Program(kernel), Program(kernel), list[str]()

    def victim() -> None:
        try:
            while True:
                kernel.sleep(SECOND)
                seen.append("runs")
        finally:
            seen.append("finally")
            kernel.sleep(SECOND)
            seen.append("never")

    thread = program.start(victim)
    other.start(lambda: kernel.sleep(100 * SECOND))
    kernel.after(3 * SECOND + SECOND // 2, lambda: setattr(program, "gone", True))
    other.finish()
    assert seen == ["runs"] * 3
    thread.dispose()
    assert seen == ["runs"] * 3 + ["finally"]
    assert thread.ended
    assert not program.errors


def test_a_process_that_kills_itself_stops_at_its_next_wait() -> None:
    kernel = Kernel(1)
    program, other, seen = Program(kernel), Program(kernel), list[str]()

    def suicide() -> None:
        try:
            program.gone = True
            kernel.pay()
        finally:
            seen.append("finally")

    thread = program.start(suicide)
    other.start(lambda: kernel.sleep(SECOND))
    other.finish()
    assert seen == []
    thread.dispose()
    assert seen == ["finally"]


def test_a_stopped_process_goes_on_where_it_was() -> None:
    kernel = Kernel(1)
    program, seen = Program(kernel), list[int]()

    def ticker() -> None:
        for _ in range(4):
            kernel.sleep(SECOND)
            seen.append(kernel.now // SECOND)

    program.start(ticker)
    kernel.after(2 * SECOND + SECOND // 2, lambda: setattr(program, "runs", False))
    kernel.after(10 * SECOND, program.resume)
    program.finish()
    assert seen == [2, 3, 11, 12]


def test_an_error_ends_the_thread_and_reaches_its_process() -> None:
    kernel = Kernel(1)
    program = Program(kernel)
    thread = program.start(lambda: 1 // 0)
    program.finish()
    assert isinstance(thread.error, ZeroDivisionError)
    assert program.errors == [thread.error]


def test_a_loop_that_lets_no_time_pass_is_found() -> None:
    kernel = Kernel(1)

    def again() -> None:
        kernel.at(kernel.now, again)

    again()
    with pytest.raises(WorldError, match="without letting time pass"):
        kernel.run(lambda: False, HOUR)


def test_a_world_in_which_all_wait_for_each_other_is_found() -> None:
    kernel = Kernel(1)
    program = Program(kernel)
    first, second = SimulatedSemaphore(kernel), SimulatedSemaphore(kernel)

    def take(one: SimulatedSemaphore, other: SimulatedSemaphore) -> None:
        with one:
            kernel.sleep(SECOND)
            with other:
                pass

    program.start(lambda: take(first, second))
    program.start(lambda: take(second, first))
    with pytest.raises(WorldError, match="nothing will ever happen"):
        program.finish()
    for thread in program.threads:
        program.gone = True
        thread.dispose()


def test_a_world_has_a_limit() -> None:
    kernel = Kernel(1)
    kernel.after(2 * HOUR, lambda: None)
    with pytest.raises(WorldError, match="did not end within"):
        kernel.run(lambda: False, HOUR)


def test_a_program_that_looks_at_a_clock_for_ever_sees_time_pass() -> None:
    kernel = Kernel(1)
    program = Program(kernel)

    def spin() -> None:
        until = kernel.now + SECOND // 1_000
        while kernel.now < until:
            kernel.look()

    program.start(spin)
    program.finish()


def test_blocking_outside_of_a_program_is_refused() -> None:
    with pytest.raises(WorldError, match="called by a program"):
        Kernel(1).block()


def test_a_semaphore_wakes_those_who_wait_and_gives_up_in_time() -> None:
    kernel = Kernel(1)
    program, semaphore, seen = Program(kernel), SimulatedSemaphore(kernel, 0), list[object]()

    def taker() -> None:
        seen.append((semaphore.acquire(timeout=1.0), kernel.now // SECOND))
        seen.append((semaphore.acquire(), kernel.now // SECOND))
        seen.append(semaphore.acquire(blocking=False))

    program.start(taker)
    kernel.after(5 * SECOND, semaphore.release)
    program.finish()
    assert seen == [(False, 2), (True, 6), False]
