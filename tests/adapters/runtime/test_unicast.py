"""Local ends of resolution: the one of a relay goes before that of all, and that before the usual address."""

import pytest

from stablecast.runtime.unicast import LocalEnd, UnicastSettings, bound
from tests.support.network import unused_port

USUAL = "127.0.0.1"


@pytest.mark.parametrize(
    ("end", "own", "address"),
    [
        ("127.0.0.2", "127.0.0.3", "127.0.0.2"),
        ("127.0.0.2", "", "127.0.0.2"),
        ("", "127.0.0.3", "127.0.0.3"),
        ("", "", USUAL),
    ],
)
def test_the_nearest_setting_decides(end: str, own: str, address: str) -> None:
    with bound(UnicastSettings(own, 30_000, 30_100), USUAL, LocalEnd(end)) as opened:
        where, port = opened.getsockname()
    assert (where, 30_000 <= port <= 30_100) == (address, True)


def test_a_given_port_is_used() -> None:
    port = unused_port()
    with bound(UnicastSettings(), USUAL, LocalEnd(port=port)) as opened:
        assert opened.getsockname() == (USUAL, port)


def test_each_relay_has_another_port_of_the_range() -> None:
    settings = UnicastSettings("127.0.0.4", 30_000, 30_100)
    with bound(settings, USUAL) as one, bound(settings, USUAL) as two:
        ports = {opened.getsockname()[1] for opened in (one, two)}
    assert (len(ports), all(30_000 <= port <= 30_100 for port in ports)) == (2, True)
