"""Programs on an event loop, and garbage collection in each of their phases."""

import asyncio
import errno
import subprocess
import sys

import pytest

from stablecast.runtime.event_loop import limit_scarcity_reports


def test_modules_of_a_daemon_are_exempt_from_collections() -> None:
    """In a process of its own: a frozen object is never collected."""
    program = (
        "import asyncio, gc\n"
        "from stablecast.runtime.event_loop import run_service\n"
        "run_service(asyncio.sleep(0))\n"
        "assert gc.get_freeze_count() > 1000\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_collections_are_rare_at_start_and_usual_in_a_daemon() -> None:
    program = (
        "import asyncio, gc, sys\n"
        "from stablecast.cli import main\n"
        "from stablecast.runtime import event_loop, garbage_collection\n"
        "sys.argv = ['stablecast', '--help']\n"
        "try:\n"
        "    main.main()\n"
        "except SystemExit:\n"
        "    assert gc.get_threshold()[0] == garbage_collection.YOUNG_AT_START\n"
        "event_loop.run_service(asyncio.sleep(0))\n"
        "assert gc.get_threshold()[0] == garbage_collection.YOUNG_USUAL\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


async def test_a_loop_without_descriptors_says_so_once_and_passes_on_what_is_not_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """asyncio writes a traceback for each of a hundred attempts in a turn: 61 MB in a minute."""
    loop, seen = asyncio.get_running_loop(), list[str]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: seen.append(context["message"]))
    try:
        limit_scarcity_reports(loop)
        limit_scarcity_reports(loop)
        scarce = {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, "Too many")}
        for _ in range(1000):
            loop.call_exception_handler(scarce)
            loop.call_exception_handler({"message": "it", "exception": RuntimeError("can't start new thread")})
        loop.call_exception_handler({"message": "the program's own"})
    finally:
        loop.set_exception_handler(before)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "connections wait" in caplog.text
    assert "a task waits or was given up: can't start new thread" in caplog.text
    assert seen == ["the program's own"]
