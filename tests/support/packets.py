"""Hypothesis strategies for the packets of topic resolution over UDP."""

from hypothesis import strategies as st

from stablecast.transports.wire.lbmr import (
    Advertisement,
    ContextInfo,
    Packet,
    PacketKind,
    ResolutionRequest,
    TopicQuery,
    WildcardQuery,
)
from tests.support.layouts import ADDRESSES, NAMES, PACKET_OPTIONS, TIR_OPTIONS, TRANSPORTS

SHORT = st.integers(0, 0xFFFF)
TRAILERS = st.lists(PACKET_OPTIONS, max_size=4).map(tuple)
VERSIONS = st.integers(0, 1)
ADVERTISEMENTS = st.builds(
    Advertisement, NAMES, TRANSPORTS, SHORT, st.integers(0, 0xFFFF_FFFF), st.lists(TIR_OPTIONS, max_size=3).map(tuple)
)
TIRS = st.lists(ADVERTISEMENTS, max_size=2).map(tuple)

NORMAL = st.builds(
    Packet,
    st.just(PacketKind.NORMAL),
    st.lists(st.builds(TopicQuery, NAMES), max_size=3).map(tuple),
    TIRS,
    TRAILERS,
    VERSIONS,
)
WILDCARD = st.builds(
    Packet,
    st.just(PacketKind.WILDCARD),
    st.lists(st.builds(WildcardQuery, st.integers(0, 255), NAMES), max_size=3).map(tuple),
    TIRS,
    TRAILERS,
    VERSIONS,
)
ALIVE = st.builds(
    lambda kind, options, version: Packet(kind, options=options, version=version),
    st.sampled_from([PacketKind.RECEIVER_ALIVE, PacketKind.SOURCE_ALIVE]),
    TRAILERS,
    VERSIONS,
)
CONTEXT = st.builds(
    ContextInfo,
    flags=SHORT.map(lambda flags: flags & ~ContextInfo.NAME),
    hop_count=st.integers(0, 255),
    port=SHORT,
    address=ADDRESSES,
    instance=st.binary(min_size=8, max_size=8),
    name=st.none() | NAMES,
    options=TRAILERS,
    version=VERSIONS,
)
REQUEST = st.builds(ResolutionRequest, flags=SHORT, options=TRAILERS, version=VERSIONS)
PACKETS = NORMAL | WILDCARD | ALIVE | CONTEXT | REQUEST
"""Strategy for packets of every kind, with any records and options."""
