"""Programs on an event loop, and garbage collection in each of their phases."""

import subprocess
import sys


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
