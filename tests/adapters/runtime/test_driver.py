"""The driver: order of inputs and effects, one timer, nothing after closing, no busy loop."""

import asyncio
import time
from collections.abc import Callable

import attrs
import pytest

from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.effects import Effect, Notify
from stablecast.core.protocol.events import Oddity
from stablecast.core.protocol.inputs import Ended, Input, Tick
from stablecast.runtime.driver import Driven, Driver
from tests.support.machine import replace


@attrs.define
class Clock:
    now: int = 0


@attrs.define
class Machine:
    """Says what it was fed; `due` is a deadline that `handle_timeout` moves on when it has passed."""

    due: int | None = None
    period: int = 0
    inputs: list[Input] = attrs.field(factory=list)
    wakes: list[int] = attrs.field(factory=list)
    outbox: list[Effect] = attrs.field(factory=list)

    def receive(self, event: Input, now: int) -> None:
        if isinstance(event, Tick):
            self.handle_timeout(now)
            return
        self.inputs.append(event)
        assert isinstance(event, Ended)
        self.outbox.append(Notify(Oddity("fed", str(event.incarnation))))

    def handle_timeout(self, now: int) -> None:
        self.wakes.append(now)
        if self.due is not None and now >= self.due:
            self.due += self.period
            self.outbox.append(Notify(Oddity("woke", str(now))))

    def next_timeout(self) -> int | None:
        return self.due

    def take_effects(self) -> list[Effect]:
        effects, self.outbox = self.outbox, []
        return effects


class Recorder:
    """Knows whether the recording is complete."""

    closed = 0

    def record(self, *_: object) -> None:
        assert not self.closed

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    replace(monkeypatch, "clock", monotonic_ns=lambda: clock.now)
    return clock


def unexpected(effect: object, error: Exception) -> None:
    """Fail the test: no effect may fail."""
    raise AssertionError(f"{effect} failed") from error


def driver_of(
    machine: Machine,
    perform: Callable[[Effect], None],
    recorder: Recorder | None = None,
    failed: Callable[[object, Exception], None] = unexpected,
) -> Driver[Input, Effect]:
    driven: Driven[Input, Effect] = Driven(machine, recorder)
    return Driver(driven, perform, failed)


def text(effect: Effect) -> str:
    assert isinstance(effect, Notify)
    assert isinstance(effect.event, Oddity)
    return effect.event.text


async def test_inputs_that_arise_wait_for_the_effects() -> None:
    machine, performed = Machine(), list[str]()

    def perform(effect: Effect) -> None:
        said = text(effect)
        if said == "1":
            driver.feed_all([Ended(2), Ended(3)])
        performed.append(said)

    driver = driver_of(machine, perform)
    driver.feed(Ended(1))
    assert machine.inputs == [Ended(1), Ended(2), Ended(3)]
    assert performed == ["1", "2", "3"]


async def test_an_input_fed_during_a_question_waits_for_its_end() -> None:
    """As if it were an effect: also what is fed before closing."""
    machine, performed = Machine(), list[str]()

    def act(what: str) -> None:
        driver.feed_all([Ended(2), Ended(3)])
        driver.close()
        driver.feed(Ended(4))
        performed.append(what)
        assert machine.inputs == []
        assert not driver.idle

    driver = driver_of(machine, lambda effect: performed.append(text(effect)))
    idle = [driver.idle]
    driver.during(performed.append, "0")
    idle.append(driver.idle)
    driver.during(act, "1")
    idle.append(driver.idle)
    assert performed == ["0", "1", "2", "3"]
    assert idle == [True, True, False]


async def test_an_input_fed_during_a_question_sets_the_timer(clock: Clock) -> None:
    machine = Machine(period=1)
    driver = driver_of(machine, lambda _: None)

    def act(_: str) -> None:
        machine.due = 0
        driver.feed(Ended(1))

    driver.during(act, "why")
    await settled()
    await settled()
    assert machine.wakes == [0]
    driver.close()


async def test_a_failure_during_a_question_leaves_the_driver_idle() -> None:
    """It is as an effect that fails; what was fed meanwhile is done."""
    machine, failures = Machine(), list[tuple[object, str]]()
    driver = driver_of(machine, lambda _: None, failed=lambda what, error: failures.append((what, str(error))))

    def fail(what: str) -> None:
        driver.feed(Ended(1))
        raise ValueError(what)

    driver.during(fail, "why")
    assert failures == [("why", "why")]
    assert machine.inputs == [Ended(1)]
    assert driver.idle


async def test_a_driver_that_records_is_never_idle() -> None:
    driver = driver_of(Machine(), lambda _: None, Recorder())
    idle = [driver.idle]
    driver.feed(Ended(1))
    idle.append(driver.idle)
    assert idle == [False, False]
    driver.close()


async def test_an_effect_that_fails_costs_no_other_effect() -> None:
    """It is handed to `failed`, the others are performed, and the machine goes on."""
    machine, performed, failures = Machine(), list[str](), list[tuple[str, str]]()

    def perform(effect: Effect) -> None:
        if text(effect) in ("1", "3"):
            raise ValueError("no")
        performed.append(text(effect))

    def failed(effect: object, error: Exception) -> None:
        failures.append((text(effect), str(error)))  # type: ignore[arg-type]
        if len(failures) == 1:
            driver.feed(Ended(9))
            raise KeyError("even so")

    driver = driver_of(machine, perform, failed=failed)
    machine.outbox += [Notify(Oddity("fed", number)) for number in ("0", "1", "2")]
    handled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: handled.append(context["message"]))
    driver.feed(Ended(3))
    assert performed == ["0", "2", "9"]
    assert failures == [("1", "no"), ("3", "no")]
    assert handled == ["handling the failure of the effect 'Notify' failed"]
    driver.feed(Ended(4))
    assert performed == ["0", "2", "9", "4"]


async def test_an_input_that_waited_and_is_refused_costs_no_other_input() -> None:
    class Refusing(Machine):
        def receive(self, event: Input, now: int) -> None:
            if event == Ended(2):
                raise ValueError("refused")
            super().receive(event, now)

    machine, performed = Refusing(), list[str]()

    def perform(effect: Effect) -> None:
        performed.append(text(effect))
        if text(effect) == "1":
            driver.feed_all([Ended(2), Ended(3)])

    handled: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: handled.append(context["message"]))
    driver = driver_of(machine, perform)
    driver.feed(Ended(1))
    assert performed == ["1", "3"]
    assert handled == ["an input that had to wait was refused"]


async def test_closing_ends_the_recording_once() -> None:
    machine, recorder = Machine(due=1, period=1), Recorder()
    driver = driver_of(machine, lambda _: None, recorder)
    driver.feed(Ended(1))
    driver.close()
    driver.close()
    driver.feed(Ended(2))
    assert machine.inputs == [Ended(1)]
    assert recorder.closed == 1


async def test_inputs_fed_before_closing_are_still_performed(clock: Clock) -> None:
    """A last acknowledgement is said although an effect's callback closes."""
    machine, recorder, performed = Machine(), Recorder(), list[str]()

    def perform(effect: Effect) -> None:
        performed.append(text(effect))
        if text(effect) == "1":
            driver.feed(Ended(2))
            driver.close()
            driver.feed(Ended(3))

    driver = driver_of(machine, perform, recorder)
    driver.feed(Ended(1))
    assert performed == ["1", "2"]
    assert recorder.closed == 1


async def test_what_was_deferred_is_fed_before_a_timer_fires(clock: Clock) -> None:
    """An acknowledgement that is due just then covers what was consumed in the same turn of the loop."""
    machine, performed = Machine(due=5, period=10), list[str]()
    driven: Driven[Input, Effect] = Driven(machine, None)
    deferred = [Ended(7)]

    def before() -> None:
        driver.feed_all([deferred.pop() for _ in tuple(deferred)])

    driver = Driver(driven, lambda effect: performed.append(text(effect)), unexpected, before)
    clock.now = 5
    driver._wake()
    assert performed == ["7", "5"]
    driver.close()


async def test_one_timer_and_no_early_wake(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole milliseconds, rounded up: an event loop that rounds down must not wake us again and again."""
    planned: list[tuple[float, Callable[[], None]]] = []
    cancelled: list[float] = []

    class Handle:
        def __init__(self, wait: float) -> None:
            self.wait = wait

        def cancel(self) -> None:
            cancelled.append(self.wait)

    def call_later(wait: float, callback: Callable[[], None]) -> Handle:
        planned.append((wait, callback))
        return Handle(wait)

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    machine = Machine(due=10 * MILLISECOND + 1, period=5 * MILLISECOND)
    driver = driver_of(machine, lambda _: None)
    driver.feed(Ended(1))
    driver.feed(Ended(2))
    assert not planned, "what has arrived meanwhile is read first"
    await settled()
    assert [wait for wait, _ in planned] == [0.011]
    clock.now = 11 * MILLISECOND
    planned[0][1]()
    await settled()
    assert machine.wakes == [11 * MILLISECOND]
    assert [wait for wait, _ in planned] == [0.011, 0.005]
    machine.due = None
    driver.feed(Ended(3))
    await settled()
    assert cancelled == [0.005]
    machine.due = 0
    driver.feed(Ended(4))
    await settled()
    assert planned[2][0] == 0
    driver.close()
    assert cancelled == [0.005, 0]


async def test_a_timer_that_is_early_enough_stays_and_wakes_the_machine_only_when_it_is_due(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source whose deadlines move back with each sign of life costs no timer for each."""
    planned: list[tuple[float, Callable[[], None]]] = []

    def call_later(wait: float, callback: Callable[[], None]) -> object:
        planned.append((wait, callback))
        return object()

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    machine = Machine(due=10 * MILLISECOND, period=100 * MILLISECOND)
    driver = driver_of(machine, lambda _: None)
    driver.feed(Ended(1))
    await settled()
    machine.due = 30 * MILLISECOND
    driver.feed(Ended(2))
    await settled()
    assert [wait for wait, _ in planned] == [0.01]
    clock.now = 10 * MILLISECOND
    planned[0][1]()
    assert (machine.wakes, planned[1][0]) == ([], 0.02)
    clock.now = 30 * MILLISECOND
    planned[1][1]()
    assert machine.wakes == [clock.now]


async def settled() -> None:
    """Deferred work is done."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_an_idle_machine_is_left_alone() -> None:
    """As many wakes as there were deadlines, on the real clock."""
    woken = asyncio.Event()
    machine = Machine(due=0, period=20 * MILLISECOND)
    machine.due = time.monotonic_ns() + 20 * MILLISECOND

    def perform(effect: Effect) -> None:
        if len(machine.wakes) == 5:
            woken.set()

    driver = driver_of(machine, perform)
    driver.feed(Ended(1))
    await woken.wait()
    driver.close()
    assert len(machine.wakes) == 5


async def test_what_comes_before_the_timer_is_called_once_when_all_has_settled(clock: Clock) -> None:
    """A driver reports there what it gathered, such as consumed messages."""
    calls: list[int | None] = []
    machine = Machine(due=5)
    driver: Driver[Input, Effect] = Driver(
        Driven(machine, None), lambda _: None, unexpected, lambda: calls.append(machine.due)
    )
    for _ in range(3):
        driver.settle_soon()
    assert calls == []
    for _ in range(3):
        await asyncio.sleep(0)
    assert calls == [5]
    driver.close()
