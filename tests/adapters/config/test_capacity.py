"""The sums of the guide for memory, disk space and descriptors."""

import attrs
import pytest

from stablecast.config.capacity import Load, StoreNeed, need_of
from stablecast.core.protocol.messages import Wishes
from stablecast.core.protocol.settings import RepositoryConfig, RepositoryType, SourceConfig, StoreSpec

MB = 1 << 20


@pytest.mark.rows("P-033")
@pytest.mark.parametrize(("sources", "memory", "disk"), [(10, 480, 1_000), (1_000, 48_000, 100_000)])
def test_sizes_apply_to_each_source(sources: int, memory: int, disk: int) -> None:
    """48 MB x 10 = 480 MB; 48 MB x 1,000 = 48 GB; 100 MB x 1,000 = 100 GB."""
    need = need_of("orders", RepositoryConfig(), Load(sources, 1, 0))
    assert (need.memory_bytes, need.disk_bytes) == (memory * MB, disk * MB)


@pytest.mark.rows("P-105")
@pytest.mark.parametrize(
    ("kind", "memory", "disk", "descriptors"),
    [
        (RepositoryType.NO_CACHE, 0, 0, 0),
        (RepositoryType.MEMORY, 48 * MB, 0, 0),
        (RepositoryType.DISK, 48 * MB, 100 * MB, 200),
        (RepositoryType.REDUCED_FD, 48 * MB, 100 * MB, 5),
    ],
)
@pytest.mark.rows("P-105")
def test_the_type_decides_what_is_needed(kind: RepositoryType, memory: int, disk: int, descriptors: int) -> None:
    """Two descriptors for each topic of type disk, five for all topics of type reduced-fd."""
    need = need_of("orders", RepositoryConfig(kind=kind), Load(1, 100, 0))
    store = StoreNeed("a", (need,))
    assert (store.memory_bytes, store.disk_bytes, store.guide_descriptors) == (memory, disk, descriptors)


@pytest.mark.rows("P-111", "P-593")
def test_the_sizes_of_a_source_replace_those_of_the_store() -> None:
    source = SourceConfig("orders", 1, "client:1", "stream:1", (StoreSpec("store:1"),))
    asked = attrs.evolve(source, wishes=Wishes(size_limit=MB, disk_limit=2 * MB))
    need = need_of("orders", RepositoryConfig(), Load(3, 1, 0), [asked])
    assert (need.memory_bytes, need.disk_bytes) == (3 * MB, 6 * MB)


def test_every_client_needs_its_connections() -> None:
    alone = StoreNeed("a", (need_of("orders", RepositoryConfig(), Load(10, 10, 0)),))
    heard = StoreNeed("a", (need_of("orders", RepositoryConfig(), Load(10, 10, 4)),))
    assert heard.descriptors - alone.descriptors == 10 * 4 * 2
    assert (alone.clients, heard.clients, heard.sources) == (10, 50, 10)
