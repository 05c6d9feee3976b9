"""The sink counts a row as written only if a quorum has it: what an ended task reached one store with is not enough."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="skipped: the spark extra is not installed")

import pyarrow as pa  # type: ignore[import-untyped]

from stablecast.spark import message_sink
from stablecast.spark.message_options import WriteTerms
from stablecast.spark.message_sink import SinkPlace, _sources_seen, _written, lane_session
from stablecast.spark.row_identity import ROW, RowMark, SinkError, content_of
from tests.support.network import LOCAL, Network, drop, network, until, unused_port

PLACE = SinkPlace("one", 0, "a", 0)


def table(*rows: str) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"payload": pa.array(rows, pa.string())})


def held(net: Network, name: str) -> int:
    return sum(one.held.total() for one in net.stores[name].machine.status.repositories.values())


async def begun(net: Network, stores: list[str]) -> None:
    """End a task after a row that the first store alone has got."""
    context = await net.context()
    lane = lane_session("copies", PLACE.query, PLACE.partition)
    source = await context.source("copies", stores=stores, session_id=lane)
    for name in "bc":
        await net.stop(name)
    source.try_send(b"y", {ROW: str(RowMark(PLACE.batch, 1, PLACE.epoch, content_of(b"y", {})))})
    await until(lambda: held(net, "a") == 2)
    await drop(context)


@pytest.mark.parametrize("refill", [True, False])
async def test_a_row_that_one_store_has_is_not_written(
    refill: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other stores fetch it, or the task is refused: it is never left out in silence."""
    monkeypatch.setattr(message_sink, "REGISTRATION_SECONDS", 30.0 if refill else 1.0)
    async with network(tmp_path) as net:
        places = {name: f"{LOCAL}:{unused_port()}" for name in "abc"}
        for name, place in places.items():
            await net.store(name, place, changes={"refill": refill})
        terms = WriteTerms.of({"path": "copies", "stores": ",".join(places.values()), "sink": "one", "patience": "5"})
        seen = await _sources_seen(terms)
        await _written(terms, PLACE, seen, table("x"))
        await begun(net, list(places.values()))
        for name in "bc":
            await net.store(name, places[name], changes={"refill": refill})
        again = _written(terms, PLACE, seen, table("x", "y"))
        if not refill:
            with pytest.raises(SinkError, match="1 rows that an earlier task of batch 0 of the sink 'one' sent"):
                await again
            return
        done = await again
        assert (done.sent, done.repeated) == (0, 2)
        assert max(held(net, "b"), held(net, "c")) == 2
