"""Hypothesis strategies for LBMC messages."""

from hypothesis import strategies as st

from stablecast.transports.wire.lbmc import PAYLOAD_KINDS, Message, MessageKind
from tests.support.layouts import HEADERS

WORD = st.integers(0, 0xFFFF_FFFF)
CHAINS = st.lists(HEADERS, max_size=4).map(tuple)
BARE_KINDS = [kind for kind in MessageKind if kind not in PAYLOAD_KINDS]

WITH_PAYLOAD = st.builds(Message, st.sampled_from(sorted(PAYLOAD_KINDS)), WORD, WORD, CHAINS, st.binary(max_size=40))
BARE = st.builds(
    lambda kind, headers: Message(kind, headers=headers),
    st.sampled_from(BARE_KINDS),
    st.lists(HEADERS, min_size=1, max_size=4).map(tuple),
)
MESSAGES = WITH_PAYLOAD | BARE
"""Strategy for LBMC messages of every kind, with any chain of headers."""
