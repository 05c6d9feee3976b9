"""Records share datagrams: order, room, count."""

from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.transports.resolution.patterns import MAX_PATTERN_BYTES
from stablecast.transports.resolution.records import MAX_TOPIC_BYTES, SourceRecord, advertisement
from stablecast.transports.resolution.udp.record_batches import OVERHEAD, share, size
from stablecast.transports.resolution.udp.settings import MIN_DATAGRAM, ONE_FRAME
from stablecast.transports.wire import lbmr

TRAILER = lbmr.standard_options(b"instance")
NORMAL = lbmr.PacketKind.NORMAL
ROOM = ONE_FRAME - OVERHEAD


@given(st.lists(st.integers(1, ROOM + 100), max_size=60), st.integers(1, 9))
@settings(max_examples=100)
def test_groups_are_in_order_full_and_within_the_limits(sizes: list[int], most: int) -> None:
    groups = list(share(enumerate(sizes), ONE_FRAME, most))
    assert [number for group in groups for number in group] == list(range(len(sizes)))
    used = [sum(sizes[number] for number in group) for group in groups]
    assert all(octets <= ROOM or len(group) == 1 for octets, group in zip(used, groups, strict=True))
    assert all(len(group) <= most for group in groups)
    for octets, group, following in zip(used, groups, groups[1:], strict=False):
        assert len(group) == most or octets + sizes[following[0]] > ROOM


def test_a_full_group_of_advertisements_is_a_datagram_within_the_limit() -> None:
    record = SourceRecord("127.0.0.1:14371", 1, 2, "127.0.0.1:14391", persistent=True, instance=b"instance")
    tirs = [advertisement(f"topic/{number}", record, 60) for number in range(100)]
    groups = list(share(((tir, size(tir)) for tir in tirs), ONE_FRAME))
    lengths = [len(lbmr.encode(lbmr.Packet(NORMAL, (), group, TRAILER))) for group in groups]
    assert len(groups) > 1
    assert max(lengths) <= ONE_FRAME
    assert min(lengths[:-1]) > ONE_FRAME - 2 * size(tirs[-1])


def test_short_queries_are_bound_by_their_count() -> None:
    group = next(share(((lbmr.TopicQuery("q"), 2) for _ in range(300)), ONE_FRAME))
    assert len(group) == lbmr.MAX_QUERIES
    assert lbmr.decode(lbmr.encode(lbmr.Packet(NORMAL, group, (), TRAILER))) == lbmr.Packet(NORMAL, group, (), TRAILER)


def test_the_longest_advertisement_and_the_longest_pattern_fit_the_smallest_datagram() -> None:
    """resolver_datagram_max_size, 500 at least; the source is behind a router."""
    place = "LBTRM:127.0.0.1:14371:deadbeef:239.101.3.10:14400"
    record = SourceRecord(
        place, 0xDEADBEEF, 2, "127.0.0.1:14391", persistent=True, instance=b"instance", cost=1, hops=1, domain=2
    )
    tir = advertisement("t" * MAX_TOPIC_BYTES, record, 60)
    pattern = lbmr.WildcardQuery(lbmr.PatternLanguage.PCRE, "p" * MAX_PATTERN_BYTES)
    packets = (
        lbmr.Packet(NORMAL, (), (tir,), TRAILER),
        lbmr.Packet(lbmr.PacketKind.WILDCARD, (pattern,), (), TRAILER),
    )
    assert all(len(lbmr.encode(packet)) <= MIN_DATAGRAM for packet in packets)
