"""From a plan to stores: the effect of each option that is about the disk, the host or the directories."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from stablecast.client import Context
from stablecast.config.disk_options import DiskConfig
from stablecast.config.plan import StorePlan
from stablecast.config.plan_assembly import build
from stablecast.config.toml_file import outline
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.events import RegistrationError
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, StoreConfig, TopicPattern
from stablecast.runtime.ports import PortError
from stablecast.store import store as stores
from stablecast.store.journal.disk import SEGMENT_BYTES
from stablecast.store.journal.segments import FEW_OPEN_FILES, MAX_OPEN_FILES
from stablecast.store.log_lines import unheard
from stablecast.store.settings import MIN_SEGMENT_BYTES, all_settings, disk_of, segment_bytes, settings_of
from stablecast.store.store import Store
from tests.adapters.store.test_store import until
from tests.support.machine import replace
from tests.support.network import Events

TOPIC = "orders"


def plan(directory: Path, store: dict[str, Any] | None = None, *topics: dict[str, Any], **options: Any) -> StorePlan:
    """A store in two fresh directories."""
    for name in ("cache", "state"):
        (directory / name).mkdir(exist_ok=True)
    own = {"disk-cache-directory": str(directory / "cache"), "disk-state-directory": str(directory / "state")}
    table = {"name": "a", "port": 0, "interface": "127.0.0.1", **(store or {}), "options": {**own, **options}}
    table["topic"] = list(topics) or [{"pattern": TOPIC}]
    return build(outline({"store": [table]})).stores[0]


def kept(pattern: str, **options: Any) -> dict[str, Any]:
    return {"pattern": pattern, "options": {name.replace("_", "-"): value for name, value in options.items()}}


async def started(made: StorePlan, *, new: bool = True) -> Store:
    store = Store(settings_of(made, unheard, new=new))
    await store.start()
    return store


def open_files(directory: Path) -> int:
    """Descriptors of this process that lead into a directory."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(link.readlink()))
        except FileNotFoundError:
            continue  # The one that lists.
    return sum(link.startswith(str(directory)) for link in links)


@pytest.mark.rows("P-828", "P-829", "P-830")
def test_the_journal_follows_the_options_of_the_disk() -> None:
    disk = disk_of(DiskConfig(buffer_bytes=70_000, preallocate=True, checksum=False), StoreConfig("", 1))
    assert (disk.buffer_bytes, disk.preallocate, disk.verify, disk.open_files) == (70_000, True, False, MAX_OPEN_FILES)


@pytest.mark.rows("P-105", "P-107")
@pytest.mark.parametrize(
    ("kinds", "few"),
    [(["reduced-fd"], True), (["reduced-fd", "memory"], True), (["reduced-fd", "disk"], False), (["disk"], False)],
)
def test_descriptors_are_saved_where_that_is_asked_for(kinds: list[str], few: bool, tmp_path: Path) -> None:
    topics = [kept(f"t{at}", repository_type=kind) for at, kind in enumerate(kinds)]
    settings = settings_of(plan(tmp_path, None, *topics), unheard)
    assert settings.disk.open_files == (FEW_OPEN_FILES if few else MAX_OPEN_FILES)


@pytest.mark.rows("P-104", "P-105", "P-106")
async def test_a_store_with_reduced_fd_has_five_descriptors_with_a_hundred_topics(tmp_path: Path) -> None:
    """While it writes, and while it reads back."""
    store = await started(plan(tmp_path, None, {**kept(".", repository_type="reduced-fd"), "type": "PCRE"}))
    async with Context(session_id=1) as context:
        sources = [await context.source(f"t{at}", stores=[store.address]) for at in range(100)]
        for source in sources:
            await source.send(b"one")
        for source in sources:
            await source.wait_stable_through(0)
        assert open_files(tmp_path / "cache") <= 5
        store._messages._cache._sources.clear()  # as if it were long ago
        async with Context(session_id=2) as other:
            for source in sources[:5]:
                assert (await anext(other.receiver(source.config.topic, source=source.config.transport))).recovered
        assert 3 <= open_files(tmp_path / "cache") <= 5
    await store.stop()
    kinds = {repository.terms.kind for repository in store.machine.status.repositories.values()}
    assert kinds == {RepositoryType.REDUCED_FD}


async def test_port_0_is_the_first_free_one_of_the_range(tmp_path: Path) -> None:
    """And with none left the store says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        wide = {"request_tcp_port_low": port, "request_tcp_port_high": min(port + 20, 65_535)}
        store = await started(plan(tmp_path, {"context": wide}))
        await store.stop()
        assert port < int(store.address.rpartition(":")[2]) <= port + 20
        narrow = {"request_tcp_port_low": port, "request_tcp_port_high": port}
        with pytest.raises(PortError, match=f"no port from {port} to {port} is free"):
            await started(plan(tmp_path, {"context": narrow}))
    assert all_settings(build(outline({})), unheard) == []


@pytest.mark.rows("P-817", "P-828")
async def test_a_topic_that_no_pattern_matches_is_refused(tmp_path: Path) -> None:
    """And the segment of a topic that preallocates has its room at once."""
    store = await started(plan(tmp_path, None, kept(TOPIC, repository_disk_file_preallocate=1)))
    async with Context(session_id=1) as context:
        await context.source(TOPIC, stores=[store.address])
        (segment,) = (tmp_path / "cache").glob("*.seg")
        assert segment.stat().st_size >= store.settings.disk.segment_bytes
        assert segment.stat().st_blocks * 512 >= store.settings.disk.segment_bytes
        events = Events()
        await context.source("other", stores=[store.address], on_event=events, wait=False)
        await until(lambda: events.of(RegistrationError))
    await store.stop()
    assert segment.stat().st_size < 10_000


@pytest.mark.rows("P-812", "P-813")
async def test_a_new_store_is_new_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """P-812, P-813; formal design, 7.6: a cache directory whose files are gone is not that of a new store."""
    made = plan(tmp_path)
    store = await started(made)
    await store.stop()
    assert store.reports == []
    store = await started(made, new=False)
    await store.stop()
    assert store.reports == []
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    store = await started(made)
    assert store.machine.registry.mute_until is not None
    await store.stop()
    assert [report.rpartition(": ")[2] for report in store.reports] == [
        "no registration is granted for 30 s, because clients may count on earlier ones",
        "the store has no vote about earlier messages of a source until that source announces itself",
    ]


@pytest.mark.rows("P-810")
async def test_a_store_on_all_interfaces_announces_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources must be able to answer it."""
    monkeypatch.setattr(stores, "announced", lambda host: "127.0.0.1" if host == "0.0.0.0" else host)
    store = await started(plan(tmp_path, {"interface": "0.0.0.0", "context": {"request_tcp_port_low": 14_000}}))
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        await (await source.send(b"one")).stable()
    await store.stop()
    assert store.address.startswith("127.0.0.1:")
    assert store.config.address == store.address


@pytest.mark.rows("P-109")
async def test_a_former_disk_store_started_as_memory_is_one_on_disk(tmp_path: Path) -> None:
    """Old messages are found, so the repository stays what it was."""
    for kind in ("disk", "memory"):
        store = await started(plan(tmp_path, None, kept(TOPIC, repository_type=kind)))
        async with Context(session_id=1) as context:
            source = await context.source(TOPIC, stores=[store.address])
            await (await source.send(b"one")).stable()
        (repository,) = store.machine.status.repositories.values()
        await store.stop()
        assert repository.terms.kind is RepositoryType.DISK


async def test_restoring_the_last_hours_leaves_older_messages_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted back from the newest message, by the times in the journal."""
    now = [1_000_000_000_000_000_000]
    replace(monkeypatch, "clock", wall_ns=lambda: now[0])
    made = plan(tmp_path, {"restore-last": 2})
    store = await started(made)
    async with Context(session_id=1) as context:
        source = await context.source(TOPIC, stores=[store.address])
        for number in range(5):
            await source.send(b"%d" % number)
            await source.wait_stable_through(number)
            now[0] += 3600 * 1_000_000_000
    await store.stop()
    store = await started(made)
    (repository,) = store.machine.status.repositories.values()
    assert (repository.trail, repository.newest) == (2, 4)
    await store.stop()


@pytest.mark.rows("P-805", "P-845", "P-849")
async def test_options_of_the_library_reach_a_running_store(tmp_path: Path) -> None:
    """From the option file of the daemon, and over it from the store and its topics."""
    flat = tmp_path / "library.cfg"
    low = 20_000 + os.getpid() % 10_000
    flat.write_text(
        f"context request_tcp_port_low {low}\ncontext request_tcp_port_high {low + 9}\n"
        "receiver retransmit_request_outstanding_maximum 7\nreceiver retransmit_request_interval 900\n"
    )
    for name in ("cache", "state"):
        (tmp_path / name).mkdir()
    table = {
        "name": "a", "port": 0, "interface": "127.0.0.1", "context": {"request_tcp_port_low": low + 2},
        "options": {"disk-cache-directory": str(tmp_path / "cache"), "disk-state-directory": str(tmp_path / "state")},
        "topic": [{"pattern": TOPIC, "receiver": {"retransmit_request_interval": 300}}],
    }  # fmt: skip
    made = build(outline({"daemon": {"lbm-config": str(flat)}, "store": [table]})).stores[0]
    store = await started(made)
    try:
        assert low + 2 <= int(store.address.rpartition(":")[2]) <= low + 9
        async with Context(session_id=1) as context:
            await context.source(TOPIC, stores=[store.address])
            await until(lambda: store.machine.status.repositories)
            [repository] = store.machine.repositories.values()
            assert repository.filling.requests.window == 7
            assert repository.filling.requests.retry_ns == 300 * MILLISECOND
    finally:
        await store.stop()


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([104_857_600], 26_214_400),
        ([104_857_600, 20_000_000], 5_000_000),
        ([196_992], MIN_SEGMENT_BYTES),
        ([1 << 40], SEGMENT_BYTES),
        ([0], SEGMENT_BYTES),
        ([], SEGMENT_BYTES),
    ],
)
def test_files_are_small_against_the_smallest_limit(limits: list[int], expected: int) -> None:
    topics = [TopicPattern(f"t{limit}", RepositoryConfig(disk_limit=limit)) for limit in limits]
    topics.append(TopicPattern("m", RepositoryConfig(kind=RepositoryType.MEMORY, disk_limit=1)))
    assert segment_bytes(StoreConfig("", 1, repository=None, topics=tuple(topics))) == expected
