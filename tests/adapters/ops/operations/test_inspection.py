"""The clients and the messages of a directory."""

import io
import json
from pathlib import Path

import attrs
import pytest
from rich.console import Console

from stablecast.ops.operations.inspection import inspect, running_tables, tables
from stablecast.ops.operations.target import OperationError
from stablecast.store.journal import Journal
from tests.adapters.ops.operations.store_directory import READER, SOURCE, block, fill, kept


@pytest.mark.rows("P-711")
async def test_everything_but_the_messages(tmp_path: Path) -> None:
    """A tool that looks at store files."""
    report = inspect(await kept(tmp_path))
    assert json.loads(json.dumps(report)) == report
    orders, quotes = report["sources"]
    assert (orders["topic"], orders["messages"], orders["first"], orders["last"], orders["holes"]) == (
        "orders",
        10,
        0,
        11,
        1,
    )
    assert [(reader["reg_id"], reader["acknowledged"], reader["needs_from"]) for reader in orders["receivers"]] == [
        (2001, 4, 5),
        (2002, None, 2),
    ]
    assert (quotes["messages"], quotes["trail"], quotes["receivers"]) == (3, None, [])
    [segment] = report["segments"]
    assert (segment["number"], segment["live"], segment["sources"]) == (1, 3, 2)


async def test_a_source_that_holds_nothing(tmp_path: Path) -> None:
    def gone(journal: Journal) -> None:
        journal.append_messages(1001, 0, 6, 55, block(0, 6), 2)
        journal.trim(1001, 6, 3)

    [source] = inspect(await fill(tmp_path, SOURCE, then=gone))["sources"]
    assert (source["messages"], source["first"], source["last"], source["trail"]) == (0, None, None, 6)


async def test_a_table_says_the_same(tmp_path: Path) -> None:
    seen = Console(file=io.StringIO(), width=160)
    for directory in (await kept(tmp_path / "full"), await fill(tmp_path / "empty", SOURCE, READER)):
        for table in tables(inspect(directory)):
            seen.print(table)
    text = seen.file.getvalue()  # type: ignore[attr-defined]
    assert "orders" in text
    assert "0..11" in text
    assert "2, 5" in text


async def test_a_reg_id_is_whole_on_the_narrowest_terminal(tmp_path: Path) -> None:
    """The arguments of the other commands must not be cut short."""
    seen = Console(file=io.StringIO(), width=80)
    for table in tables(inspect(await fill(tmp_path, attrs.evolve(SOURCE, reg_id=4_093_582_111, session_id=1 << 62)))):
        seen.print(table)
    assert "4093582111" in seen.file.getvalue()  # type: ignore[attr-defined]


def test_a_running_store_is_shown_likewise() -> None:
    """With the first few of many receivers."""
    store = {"name": "orders", "address": "a:1", "level": "OK", "cache_directory": "cache"}
    one = {
        "reg_id": 5, "topic": "t", "session_id": 7, "messages": 3, "memory": [9, 0, 0], "window": [0, 0, 2], "holes": 0,
        "receivers": [{"acknowledged": number} for number in range(9)],
    }  # fmt: skip
    seen = Console(file=io.StringIO(), width=160)
    for table in running_tables(store, [one, {**one, "messages": 0, "receivers": []}]):
        seen.print(table)
    text = seen.file.getvalue()  # type: ignore[attr-defined]
    assert "1, 2, 3, 4 and 5 more" in text


def test_what_is_no_journal_is_not_shown_as_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match=r"there is no journal in .*: name the directory disk-cache-directory"):
        inspect(tmp_path)
