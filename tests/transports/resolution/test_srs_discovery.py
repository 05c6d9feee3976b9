"""A receiver that stays learns exactly the live sources, whatever happens to them."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablecast.core.machine.units import SECOND
from stablecast.transports.wire import srs
from stablecast.transports.wire.rsocket import Frame, FrameKind
from tests.transports.resolution.srs_played import ASK, CONFIG, SETUP, Played, info, register, tell, wants

STEPS = st.tuples(
    st.sampled_from(["join", "lose", "announce", "delete", "want", "unwant", "leave", "wait"]),
    st.integers(1, 2),
    st.integers(1, 2),
)


@pytest.mark.rows("T-403", "T-409", "T-412", "T-415")
@given(st.lists(STEPS, max_size=30))
@settings(max_examples=100, deadline=None)
def test_a_receiver_that_stays_learns_exactly_the_live_sources(steps: list[tuple[str, int, int]]) -> None:
    """After any actions of others, it knows every source of the service."""
    played = Played(attrs.evolve(CONFIG, max_clients=9))
    heard: dict[bytes, srs.SourceInfo] = {}
    connection, online = 10, dict[int, int]()

    def listen(said: dict[int, list[srs.Message]]) -> None:
        for message in said.get(10, []):
            assert isinstance(message, srs.SourceInfo | srs.RegistrationResponse | srs.StreamRequest)
            if isinstance(message, srs.SourceInfo):
                if message.cost == srs.ENDED:
                    del heard[message.otid]
                else:
                    heard[message.otid] = message

    listen({10: played.join(10, wants("orders"))})
    for step, who, which in steps:
        source = info(index=which + 10 * who)
        told: srs.Message | None = None
        match step:
            case "join":
                connection += 1
                online[who] = connection
                played.accept(connection)
                listen(played.send(connection, SETUP, register(who, connection), tell(source), ASK))
            case "lose" if who in online:
                played.lose(online.pop(who))
            case "announce":
                told = source
            case "delete":
                told = srs.SourceDelete(otid=source.otid, topic="orders")
            case "want":
                told = wants("orders")
            case "unwant":
                told = srs.ReceiverDelete(name="orders", instance=b"instance")
            case "leave":
                told = srs.LeaveInfo(otid=source.otid, topic="orders", source="", instance=b"instance")
            case _:
                for _ in range(which * 30):
                    listen(played.at(played.now + SECOND))
                    for alive in (10, *online.values()):
                        listen(played.send(alive, Frame(FrameKind.KEEPALIVE)))
        if told is not None and who in online:
            listen(played.send(online[who], tell(told)))
        assert heard.keys() == played.service.directory.sources.keys()
