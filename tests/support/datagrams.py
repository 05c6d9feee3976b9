"""Hypothesis strategies for the packets of the reliable transports over UDP."""

from typing import Any

from hypothesis import strategies as st

from stablecast.transports.wire import lbtrm, lbtru

BYTE = st.integers(0, 0xFF)
SHORT = st.integers(0, 0xFFFF)
WORD = st.integers(0, 0xFFFF_FFFF)
NIBBLE = st.integers(0, 0x0F)
SQNS = st.lists(WORD, max_size=5).map(tuple)
PAYLOADS = st.binary(max_size=40)

RM_OPTIONS = st.lists(st.builds(lbtrm.Option, st.integers(1, 255), st.binary(min_size=2, max_size=20)), max_size=2).map(
    tuple
)
RU_OPTIONS = st.lists(
    st.builds(lbtru.SessionId, flags=SHORT, session_id=WORD) | st.builds(lbtru.ClientId, flags=SHORT, client_id=WORD),
    max_size=3,
).map(tuple)

RM_HEADER: dict[str, st.SearchStrategy[Any]] = {"nak_port": SHORT, "session_id": WORD, "options": RM_OPTIONS}
RM_PACKETS: st.SearchStrategy[lbtrm.Packet] = st.one_of(
    st.builds(
        lbtrm.Data,
        sqn=WORD,
        trail=WORD,
        flags=BYTE,
        group_shift=BYTE,
        symbol=SHORT,
        payload=PAYLOADS,
        **RM_HEADER,
    ),
    st.builds(
        lbtrm.SessionMessage,
        sm_sqn=WORD,
        lead=WORD,
        trail=WORD,
        flags=BYTE,
        group_shift=BYTE,
        reserved=SHORT,
        **RM_HEADER,
    ),
    st.builds(lbtrm.Nak, format=SHORT, sqns=SQNS, **RM_HEADER),
    st.builds(lbtrm.Ncf, trail=WORD, reserved=BYTE, reason=NIBBLE, format=NIBBLE, sqns=SQNS, **RM_HEADER),
)
"""Strategy for LBT-RM packets of every kind."""

RU_PACKETS: st.SearchStrategy[lbtru.Packet] = st.one_of(
    st.builds(lbtru.Data, flags=SHORT, sqn=WORD, trail=WORD, options=RU_OPTIONS, payload=PAYLOADS),
    st.builds(lbtru.SessionMessage, flags=SHORT, sm_sqn=WORD, lead=WORD, trail=WORD, options=RU_OPTIONS),
    st.builds(lbtru.Nak, reserved=SHORT, format=SHORT, sqns=SQNS, options=RU_OPTIONS),
    st.builds(
        lbtru.Ncf,
        reserved=SHORT,
        trail=WORD,
        padding=BYTE,
        reason=NIBBLE,
        format=NIBBLE,
        sqns=SQNS,
        options=RU_OPTIONS,
    ),
    st.builds(lbtru.Ack, reserved=SHORT, sqn=WORD, options=RU_OPTIONS),
    st.builds(lbtru.Request, request=SHORT, options=RU_OPTIONS),
    st.builds(lbtru.Reset, reason=SHORT),
)
"""Strategy for LBT-RU packets of every kind."""
