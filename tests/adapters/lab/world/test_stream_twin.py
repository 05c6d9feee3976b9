"""Simulated TCP answers each sequence of calls as the TCP of this machine does."""

import errno
import socket
import time
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.lab.world.scene import scene

EXAMPLES = 100

Call = tuple[str, int, int]
"""Name of the call, number of the end that makes it, and an argument."""

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["send", "recv", "peek", "shutdown", "close", "error"]), st.integers(0, 1), st.integers(1, 9)
    ),
    max_size=12,
)


def connected() -> list[socket.socket]:
    """Two ends of a connection of this host."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        first = socket.socket()
        first.connect(listener.getsockname())
        second, _ = listener.accept()
    first.setblocking(False)
    second.setblocking(False)
    return [first, second]


def perform(sock: socket.socket, name: str, argument: int) -> Any:
    match name:
        case "send":
            return sock.send(b"0123456789"[:argument])
        case "recv":
            return sock.recv(argument)
        case "peek":
            return sock.recv(argument, socket.MSG_PEEK)
        case "shutdown":
            return sock.shutdown(socket.SHUT_WR)
        case "error":
            return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        case _:
            return sock.close()


def answers(calls: list[Call], settle: Callable[[], None]) -> list[Any]:
    """The result of each call: a value, or the name of its error."""
    ends, found = connected(), list[Any]()
    for name, end, argument in calls:
        if ends[end].fileno() < 0:
            continue
        try:
            found.append(perform(ends[end], name, argument))
        except OSError as error:
            found.append(errno.errorcode[error.errno or 0])
        settle()
    for sock in ends:
        sock.close()
    return found


@settings(max_examples=EXAMPLES)
@given(CALLS)
def test_calls_have_the_results_of_the_real_system(calls: list[Call]) -> None:
    real = answers(calls, lambda: None)
    with scene() as world:
        (process,) = world.run_programs(host=lambda: answers(calls, lambda: time.sleep(1)))
        assert process.status == real
