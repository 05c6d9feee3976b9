"""Archives and queries take what is stable by the rule of its source, from the newest history of it."""

from pathlib import Path

import attrs
import pytest

pytest.importorskip("pyspark", reason="skipped: the spark extra is not installed")

from stablecast.archive.archiver import ArchiveTerms, archive
from stablecast.archive.manifest import Manifest
from stablecast.client import ReadFailed, TopicUnknown
from stablecast.spark.message_options import ReadTerms
from stablecast.spark.message_ranges import TopicPiece, planned, spans
from stablecast.spark.message_rows import _batches
from tests.support.network import network
from tests.support.trio import Trio, dead_tail, known_to_one_of_two

PATIENCE = 0.3


def terms(trio: Trio) -> ReadTerms:
    return ReadTerms.of({"topic": "orders", "stores": ",".join(trio.stores), "patience": str(PATIENCE)})


async def test_nothing_is_archived_or_planned_while_too_few_stores_know_the_source(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        trio = await known_to_one_of_two(net)
        context = await net.context()
        folder = tmp_path / "orders"
        given = ArchiveTerms("orders", folder, trio.stores, PATIENCE)
        for _ in range(2):
            with pytest.raises(ReadFailed, match="1 of them know source 7, and 2 are needed"):
                await archive(context, given)
        assert Manifest.load(folder).sources == {}
        with pytest.raises(ReadFailed, match="2 are needed"):
            await planned(context, terms(trio))
        await trio.start("c")
        assert (await archive(context, given)).messages == 10
        [span] = await spans(context, terms(trio))
        assert (span.first, span.stop) == (0, 10)


async def test_an_archive_and_a_query_end_before_a_message_that_too_few_stores_have(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        trio = await dead_tail(net)
        await trio.synced("bc", 24)
        [known] = net.stores["c"].machine.registry.repositories.values()
        known.held.remove(12, 14)
        known.window.synced.remove(12, 14)
        context = await net.context()
        assert (
            await archive(context, ArchiveTerms("orders", tmp_path / "orders", trio.stores, PATIENCE))
        ).messages == 12
        [span] = await spans(context, terms(trio))
        assert span.stop == 12


async def test_a_task_does_not_read_a_dead_tail_from_the_only_store_that_answers(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        trio = await dead_tail(net)
        piece = TopicPiece("7", 10, 25)
        await trio.stop("b")
        await trio.start("a")
        found = [
            row
            for batch in [one async for one in _batches(terms(trio), piece, ["payload"])]
            for row in batch["payload"]
        ]
        assert [row.as_py() for row in found] == [b"stable"] * 15
        await trio.stop("c")
        with pytest.raises(ReadFailed, match="1 of 3 stores of 'orders' answered and 2 are needed"):
            await anext(_batches(terms(trio), piece, ["payload"]))


async def test_an_archive_of_a_topic_that_no_store_holds_is_refused_unless_it_may_be_new(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        trio = Trio(net)
        await trio.start("abc")
        context = await net.context()
        given = ArchiveTerms("ordres", tmp_path / "orders", trio.stores, PATIENCE)
        with pytest.raises(TopicUnknown, match="no store holds a source of 'ordres'"):
            await archive(context, given)
        assert (await archive(context, attrs.evolve(given, new=True))).messages == 0
