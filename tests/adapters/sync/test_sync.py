"""`stablecast.sync`: the client for programs without an event loop, against a real store."""

import asyncio
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stablecast import client
from stablecast.core.errors import MisuseError
from stablecast.core.protocol.events import Event
from stablecast.sync import Context, Message, Receiver, Source, WildcardReceiver
from stablecast.sync.loop_thread import LoopThread
from tests.support.daemons import daemon
from tests.support.processes import HANG_S
from tests.support.program import running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with daemon(tmp_path_factory.mktemp("store")) as one:
        yield one.store


@pytest.fixture(scope="module")
def relay() -> Iterator[str]:
    with running("lbmrd", "--listen", "127.0.0.1:0", "--json") as program:
        yield f"127.0.0.1:{program.json_line()['port']}"


@pytest.fixture
def context(relay: str) -> Iterator[Context]:
    with Context(resolver=[relay]) as opened:
        yield opened


def taken(receiver: Receiver, count: int) -> list[bytes]:
    return [receiver.next().payload for _ in range(count)]


def test_the_loop_of_the_documentation(context: Context, store: str) -> None:
    source = context.source("orders", stores=[store], session_id=1)
    receiver = context.receiver("orders", session_id=2)
    sent = source.send(b"one", {"symbol": "ABC"})
    sent.stable()
    assert (sent.number, source.stable_through, source.next_number, source.topic) == (0, 0, 1, "orders")
    source.send_many([b"two", b"three"])
    with source.batch():
        source.try_send(b"four")
    source.wait_stable_through(3)
    found: list[Message] = []
    for message in receiver:
        found.append(message)
        if len(found) == 4:
            break
    assert [message.payload for message in found] == [b"one", b"two", b"three", b"four"]
    assert [message.sequence_number for message in found] == [0, 1, 2, 3]
    assert (found[0].properties, found[0].recovered) == ({"symbol": "ABC"}, False)
    assert repr(found[0]).startswith("<Message 'orders' 0 of ")
    assert len({message.incarnation for message in found}) == 1


def test_a_lone_member_of_a_group_gets_every_message(context: Context, store: str) -> None:
    source = context.source("jobs", stores=[store])
    with context.receiver("jobs", group="workers", shares=2) as member:
        for number in range(5):
            source.send(b"%d" % number).stable()
        payloads = {member.next().payload for _ in range(5)}
        assert payloads == {b"%d" % number for number in range(5)}
        assert (set(member.shares), member.members) == ({0, 1}, 1)


def test_a_message_is_consumed_when_the_next_one_is_asked_for(relay: str, store: str) -> None:
    with Context(resolver=[relay]) as sending:
        source = sending.source("again", stores=[store], session_id=3)
        source.send_many([b"one", b"two", b"three"])
        source.wait_stable_through(2)
        with Context(resolver=[relay]) as first:
            assert taken(first.receiver("again", session_id=4), 2) == [b"one", b"two"]
        with Context(resolver=[relay]) as second:
            assert taken(second.receiver("again", session_id=4), 2) == [b"two", b"three"]


def test_explicit_acknowledgement_from_any_thread(relay: str, store: str) -> None:
    explicit = {"ume_explicit_ack_only": 1}
    with Context(resolver=[relay]) as sending:
        source = sending.source("explicit", stores=[store], session_id=5)
        source.send_many([b"one", b"two"])
        source.wait_stable_through(1)
        with Context(resolver=[relay]) as first, ThreadPoolExecutor() as workers:
            receiver = first.receiver("explicit", session_id=6, options=explicit)
            one = receiver.next()
            receiver.next()
            workers.submit(one.ack).result()
        with Context(resolver=[relay]) as second:
            assert taken(second.receiver("explicit", session_id=6, options=explicit), 1) == [b"two"]


def test_a_wait_ends_and_loses_nothing(context: Context, store: str) -> None:
    source = context.source("late", stores=[store], session_id=7)
    receiver = context.receiver("late", session_id=8)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            receiver.next(0.01)
    source.send(b"one").stable()
    source.send(b"two").stable()
    assert taken(receiver, 2) == [b"one", b"two"]


def test_all_threads_share_a_source_and_a_receiver(context: Context, store: str) -> None:
    source = context.source("shared", stores=[store], session_id=9)
    receiver = context.receiver("shared", session_id=10)
    with ThreadPoolExecutor(8) as workers:
        numbers = [*workers.map(lambda number: source.send(b"%d" % number).number, range(100))]
        payloads = [*workers.map(lambda _: receiver.next().payload, range(100))]
    assert sorted(numbers) == [*range(100)]
    assert sorted(map(int, payloads)) == [*range(100)]


def test_closing_ends_a_loop_in_another_thread(context: Context) -> None:
    receiver = context.receiver("nothing")
    reading = threading.Event()

    def read() -> list[Message]:
        reading.set()
        return [*receiver]

    with ThreadPoolExecutor() as workers:
        found = workers.submit(read)
        reading.wait()
        context.close()
        assert found.result() == []
    assert [*receiver] == []
    with pytest.raises(client.Closed, match="use it inside 'with'"):
        context.receiver("nothing")


def test_a_call_that_waits_ends_with_the_thread() -> None:
    thread = LoopThread()
    thread.start()
    waits = threading.Event()

    async def forever() -> None:
        waits.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor() as workers:
        call = workers.submit(lambda: thread.run(forever()))
        waits.wait()
        thread.stop()
        with pytest.raises(client.Closed, match="cancelled"):
            call.result()


def test_a_callback_must_not_block(context: Context, store: str) -> None:
    sources: list[Source] = []
    told: list[str] = []
    ready = threading.Event()

    def on_event(_: Event) -> None:
        if sources and not told:
            try:
                sources[0].send(b"from a callback")
            except MisuseError as error:
                told.append(str(error))
                ready.set()

    sources.append(context.source("events", stores=[store], on_event=on_event))
    sources[0].send(b"one").stable()
    assert ready.wait(HANG_S)
    assert told == ["a callback must not block: give the work to another thread, or use stablecast.client with asyncio"]


def in_a_fork(act: Callable[[], object]) -> str:
    """Return what `act` raises in a forked process. A child that waits is ended by its alarm, and says nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            act()
            said = "nothing"
        except BaseException as error:  # noqa: BLE001 - the parent judges it
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    return said


def in_a_thread(act: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as worker:
        worker.submit(act).result()


def in_a_loop(act: Callable[[], object]) -> None:
    async def main() -> None:
        act()

    asyncio.run(main())


PLACES = [lambda act: act(), in_a_thread, in_a_loop, lambda act: in_a_thread(lambda: in_a_loop(act))]
"""Where a call may be made: here, in another thread, inside of another loop, and in such a loop in another thread."""


@pytest.mark.parametrize("place", PLACES, ids=["here", "thread", "loop", "loop-in-a-thread"])
def test_each_call_works_from_everywhere_and_is_refused_at_once_in_a_forked_process(
    context: Context, store: str, place: Callable[[Callable[[], object]], object]
) -> None:
    source = context.source("orders", stores=[store])
    source.send_many([b"x"] * 4)
    receiver = context.receiver("orders")
    message = next(receiver)
    calls: list[Callable[[], object]] = [
        lambda: source.send(b"two"),
        lambda: source.send(b"three").stable(),
        lambda: source.stable_through,
        lambda: next(receiver),
        lambda: receiver.next(timeout=5),
        message.ack,
        lambda: context.source("other", stores=[store]),
        lambda: context.receiver("other"),
        source.close,
        receiver.close,
    ]

    def all_of_them() -> None:
        for call in [*calls, context.metrics, context.__enter__]:
            with pytest.raises(MisuseError, match="this process was forked"):
                call()
        context.close()

    assert in_a_fork(lambda: place(all_of_them)) == "nothing"
    for call in calls:
        place(call)
    place(context.close)


@pytest.mark.parametrize("place", PLACES, ids=["here", "thread", "loop", "loop-in-a-thread"])
@pytest.mark.parametrize("forked", [False, True], ids=["", "forked"])
def test_a_patched_interpreter_is_refused_at_once(
    place: Callable[[Callable[[], object]], object], forked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads run in the thread that starts them, and a loop there would never return."""

    def begin(thread: Any) -> None:
        thread._native_id = threading.get_native_id()
        thread.run()

    def opened() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", begin)
            with pytest.raises(MisuseError, match="has replaced the threads of this process"):
                Context(resolver=["127.0.0.1:1"]).__enter__()

    if forked:
        assert in_a_fork(lambda: place(opened)) == "nothing"
    else:
        place(opened)


def test_a_forked_process_leaves_the_blocks_of_its_parent_in_silence(context: Context, store: str) -> None:
    source, receiver = context.source("orders", stores=[store]), context.receiver("orders")
    source.send(b"one").stable()
    message = next(receiver)
    for block in (source, receiver, message, context):

        def leave(block: Any = block) -> None:
            block.__exit__(None, None, None)

        assert in_a_fork(leave) == "nothing"

    def within_a_batch() -> None:
        batch.__exit__(None, None, None)

    batch = source.batch()
    batch.__enter__()
    assert in_a_fork(within_a_batch) == "nothing"
    batch.__exit__(None, None, None)
    source.send(b"two").stable()


def test_a_forked_process_may_open_a_context_of_its_own(context: Context, relay: str) -> None:
    def open_one() -> None:
        with Context(resolver=[relay], session_id=77) as own:
            own.receiver("orders")

    assert in_a_fork(open_one) == "nothing"


def test_errors_are_those_of_the_client(context: Context) -> None:
    with pytest.raises(client.RegistrationFailed):
        context.source("orders", stores=["127.0.0.1:9"], within=0.01)
    with pytest.raises(MisuseError, match="open already"):
        context.__enter__()
    closed = Context()
    with pytest.raises(client.Closed):
        closed.receiver("orders")
    closed.close()


def test_an_error_reaches_the_caller() -> None:
    thread = LoopThread()
    thread.start()
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    thread.stop()
    thread.stop()


def test_a_pattern_receives_several_topics(context: Context, store: str) -> None:
    receiver = context.receiver(pattern="^fruit[.]", session_id=11)
    assert isinstance(receiver, WildcardReceiver)
    for topic in ("fruit.apples", "fruit.pears"):
        context.source(topic, stores=[store], session_id=12).send(topic.encode()).stable()
    found = [receiver.next() for _ in range(2)]
    assert sorted((message.topic, message.payload) for message in found) == [
        ("fruit.apples", b"fruit.apples"),
        ("fruit.pears", b"fruit.pears"),
    ]
    assert sorted(receiver.topics) == ["fruit.apples", "fruit.pears"]
    receiver.deregister()


def test_hot_numbers_are_there(context: Context, store: str) -> None:
    source = context.source("hot", stores=[store], session_id=13)
    receiver = context.receiver("hot", session_id=14, hot_failover=True)
    source.send(b"one", hot_number=5).stable()
    source.try_send_as(b"two", hot_number=6)
    assert [receiver.next().hot_number for _ in range(2)] == [5, 6]


NOT_BLOCKING = {
    "disown": "the context calls it",
    "collect": "a driver of proxies calls it",
    "fit": "the transport calls it",
    "observe": "the context calls it",
    "fail": "the context calls it",
    "greeting": "the context calls it",
    "hold": "the transport calls it",
    "info": "the context calls it",
    "standing": "the transport calls it",
    "move": "the context calls it",
    "receive": "the context calls it",
    "registered_names": "the context calls it",
    "start": "the context calls it",
    "stores_of": "the request port calls it",
    "until_failed": "calls raise the failure",
    "over": "calls raise Closed",
    "credit": "`room` waits for it",
}
"""Public names of the asyncio source that users of threads do not need, each with the reason."""


def test_a_source_has_every_call() -> None:
    public = {name for name in dir(client.Source) if not name.startswith("_")}
    assert public - vars(Source).keys() == NOT_BLOCKING.keys()


def test_names_and_arguments_are_those_of_the_client() -> None:
    for mine, other in ((Context, client.Context), (Source, client.Source)):
        for name in ("__init__", "source", "receiver", "send", "try_send", "send_many", "registered"):
            if name in vars(mine) and name in vars(other):
                mine_takes, other_takes = (inspect.signature(getattr(one, name)).parameters for one in (mine, other))
                assert mine_takes == other_takes, name


def test_a_program_of_the_readme(tmp_path: Path, relay: str, store: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from stablecast.sync import Context\n"
        f"with Context(resolver=[{relay!r}]) as context:\n"
        f"    source = context.source('program', stores=[{store!r}])\n"
        "    source.send(b'one').stable()\n"
        "    for message in context.receiver('program', session_id=7):\n"
        "        print(message.payload.decode())\n"
        "        break\n"
    )
    with running(program=(sys.executable, "-X", "dev", str(path))) as program:
        assert program.line() == "one"
        assert program.end() == (0, "", "")


def test_an_interrupt_ends_a_wait_and_closes_the_context(tmp_path: Path, relay: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from stablecast.sync import Context\n"
        "try:\n"
        f"    with Context(resolver=[{relay!r}]) as context:\n"
        "        receiver = context.receiver('nothing')\n"
        "        print('waits', flush=True)\n"
        "        receiver.next()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    with running(program=(sys.executable, "-X", "dev", str(path))) as program:
        assert program.line() == "waits"
        program.interrupt()
        assert program.end() == (0, "interrupted\n", "")


def test_messages_are_settled_in_blocks(relay: str, context: Context, store: str) -> None:
    """A block that raises goes to the dead letters in the end."""
    source = context.source("settled", stores=[store], session_id=31)
    with Context(resolver=[relay]) as reading:
        aside: Any = reading.source("settled.dead", stores=[store], session_id=32)
        policy = client.Redelivery(delay=0.001, attempts=2, dead_letters=aside)
        receiver = reading.receiver("settled", session_id=33, redelivery=policy)
        source.send_many([b"one", b"two"])
        attempts = []
        for _ in range(3):
            with receiver.next() as message:
                attempts.append((message.payload, message.attempt))
                if message.payload == b"one":
                    raise ValueError("mine")
        assert sorted(attempts) == [(b"one", 1), (b"one", 2), (b"two", 1)]
        letter = reading.receiver("settled.dead").next()
        assert (letter.payload, letter.properties["error"]) == (b"one", "ValueError: mine")
        letter.nack(0)


def test_a_loop_that_was_left_did_not_consume_its_message(relay: str, context: Context, store: str) -> None:
    """The next read in this thread begins with it, and that of another thread once the loop is gone."""
    source = context.source("left", stores=[store])
    for item in (b"one", b"two", b"three", b"four"):
        source.send(item).stable()
    found = []
    with Context(resolver=[relay], session_id=31) as reading:
        receiver = reading.receiver("left")
        for _ in range(2):
            with pytest.raises(KeyError):  # noqa: PT012 - the loop that it leaves is what is tested
                for message in receiver:
                    found.append(message.payload)
                    if message.payload == b"two":
                        raise KeyError
        loop = iter(receiver)
        found.append(next(loop).payload)
        for message in loop:
            found.append(message.payload)
            break
        del loop
        with ThreadPoolExecutor(1) as other:
            found.append(other.submit(receiver.next).result().payload)
        for message in receiver:
            found.append(message.payload)
            break
    assert found == [b"one", b"two", b"two", b"two", b"two", b"two", b"three"]
    with Context(resolver=[relay], session_id=31) as later:
        assert later.receiver("left").next().payload == b"three"
