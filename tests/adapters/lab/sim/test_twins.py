"""What the clients of a world do otherwise than the client's: no rules of their own."""

import ast

import pytest

from stablecast.client.sender import Sender
from stablecast.client.subscriber import Subscriber
from stablecast.lab.sim.proxy import Proxy
from stablecast.lab.sim.receiver import ReceiverProcess, Recipient
from stablecast.lab.sim.source import SourceProcess, StreamSource
from tests.support.tree import ROOT

RECEIVER = {
    "_drive": "the machine runs on the world's clock",
    "_make": "sessions are watched",
    "_open": "a stream of the world, which may lose runs",
    "_refused": "nothing is refused in a world",
    "_owners": "the inbox is the application's",
    "_perform": "the resolver is the world's, and sessions of who leaves deregister",
    "choose_low": "no application chooses",
    "choose_reg_id": "no application chooses",
    "found": "who leaves joins nothing more",
    "on_notify": "losses are judged",
}
SOURCE = {
    "_encode": "equal messages of a world are encoded once",
    "_encode_block": "messages are cut without being long",
    "_on_notify": "the checkers hear of it, and the application goes on",
    "_released": "the codec's caches have the messages",
    "_send_to": "connections of the world",
    "_write": "connections of the world",
    "fail": "nothing fails in a world",
}
"""By name, why a world has it, too. Whatever is not here is the client's own."""


def names(file: str) -> set[str]:
    nodes = ast.walk(ast.parse((ROOT / "adapters" / "stablecast" / "client" / file).read_text(encoding="utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name[:2] != "__"}


@pytest.mark.parametrize(
    ("ours", "theirs", "files", "same"),
    [
        ((Recipient, ReceiverProcess), Subscriber, ("receiver.py", "subscriber.py"), RECEIVER),
        ((SourceProcess, StreamSource, Proxy), Sender, ("source.py", "sender.py"), SOURCE),
    ],
)
def test_clients_of_a_world_have_no_rules_of_their_own(
    ours: tuple[type, ...], theirs: type, files: tuple[str, ...], same: dict[str, str]
) -> None:
    """Lives, joins, credit and blocks are the machines'; what drives those is the client's."""
    assert issubclass(ours[0], theirs)
    assert sorted({name for kind in ours for name in vars(kind)} & set().union(*map(names, files))) == sorted(same)
