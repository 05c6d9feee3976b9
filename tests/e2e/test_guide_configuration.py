"""Programs that are configured by printed configurations alone, with real daemons, on one host and on two."""

import os
import select
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.test_namespaces import CONFIG as RELAY
from tests.support.guide import GUIDE, placed, printed
from tests.support.namespaces import inside, one_network, reason_to_skip, two_networks
from tests.support.program import Program, running

WHY_NOT = reason_to_skip()
on_two_hosts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
APPLICATION = GUIDE / "application.xml"
PROGRAM = "stablecast.cli.main"


def sent_until_received(sender: Program, receiver: Program) -> str:
    """Send lines until the receiver prints one, and return that line."""
    assert receiver.process.stdout is not None
    while not select.select([receiver.process.stdout], [], [], 0.1)[0]:
        sender.write("hello\n")
    return receiver.line()


def store_of(directory: Path, number: int) -> Path:
    """Write the guide's store with the port of one of three stores, which permits proxies."""
    own = directory / f"store{number}"
    own.mkdir()
    extra = '<option type="store" name="allow-proxy-source" value="1"/><option type="store" name="context-name"'
    relay = '<option type="lbm-context" name="resolver_unicast_daemon" value="127.0.0.1:15380"/>'
    local = '<option type="lbm-context" name="default_interface" value="127.0.0.1"/>'
    return placed(
        "store.xml",
        own,
        **{
            "14567": str(14567 + number),
            "<web-monitor>*:15304</web-monitor>": "",
            "remote-store": f"store-{number}",
            '<option type="store" name="context-name"': f"{relay}{local}{extra}",
        },
    )


@pytest.mark.rows("P-590", "T-003")
def test_an_application_of_one_xml_file_with_three_stores_and_proxies(tmp_path: Path) -> None:
    """The source crashes. A store stands in for it, and a receiver that starts later recovers all its messages."""
    with ExitStack() as stack:
        stack.enter_context(running("lbmrd", "--listen", "127.0.0.1:15380", "--json")).json_line()
        for number in range(3):
            path = store_of(tmp_path, number)
            program = stack.enter_context(running("store", path.name, "--new", "--json", directory=path.parent))
            assert program.json_line()["ready"]
        environment = {"STABLECAST_CONFIG": str(APPLICATION), "STABLECAST_CONFIG_APPLICATION": "sender"}
        sender = stack.enter_context(running("send", "test.orders", "--json", environment=environment))
        lines = "".join(f"message {number}\n" for number in range(20))
        assert sender.process.stdin is not None
        early = stack.enter_context(
            running("receive", "test.orders", "-c", APPLICATION, "--application", "receiver", "--session-id", "9")
        )
        sender.write(lines)
        assert [early.line() for _ in range(20)] == lines.splitlines()
        os.kill(sender.process.pid, signal.SIGKILL)
        late = stack.enter_context(running("receive", "test.orders", "-c", APPLICATION, "--application", "receiver"))
        assert [late.line() for _ in range(20)] == lines.splitlines()


@on_two_hosts
@pytest.mark.rows("P-595", "P-596")
def test_the_receiver_paced_sample_on_two_hosts(tmp_path: Path) -> None:
    """Two hosts with a store each; names of stores and topics are resolved by multicast, and data flows over LBT-RM."""
    with one_network() as hosts, ExitStack() as stack:
        for number, host in enumerate(hosts):
            own = tmp_path / host
            own.mkdir()
            path = placed("receiver_paced_store.xml", own, store1=f"store{number}")
            (own / "configs" / "lbm4store.cfg").write_text(printed("lbm4store.cfg"), encoding="utf-8")
            store = stack.enter_context(inside(host, PROGRAM, "store", str(path), "--new", "--json"))
            assert store.json_line()["ready"]
        client = str(GUIDE / "receiver_paced.cfg")
        receiver = stack.enter_context(inside(hosts[1], PROGRAM, "receive", "ABC.orders", "-c", client))
        sender = stack.enter_context(inside(hosts[0], PROGRAM, "send", "ABC.orders", "-c", client, "--json"))
        # The stores do not roll a new receiver back, so it gets what is sent after its registration.
        assert sent_until_received(sender, receiver) == "hello"


@on_two_hosts
@pytest.mark.parametrize("outward", [True, False], ids=["from A to B", "from B to A"])
@pytest.mark.rows("T-221", "T-222")
def test_the_sample_of_two_networks(outward: bool, tmp_path: Path) -> None:
    """Both files as they are printed: the port of the source, and the relay that each network sees."""
    config = tmp_path / "lbmrd.xml"
    config.write_text(RELAY, encoding="utf-8")
    with two_networks() as here, inside(here.a, PROGRAM, "lbmrd", str(config), "--json") as relay:
        assert relay.json_line()["ready"]
        sides = [(here.a, str(GUIDE / "nat_inside.cfg")), (here.b, str(GUIDE / "nat_outside.cfg"))]
        (source, with_file), (receiver, other) = sides if outward else reversed(sides)
        with (
            inside(receiver, PROGRAM, "receive", "orders", "-c", other) as receiving,
            inside(source, PROGRAM, "send", "orders", "-c", with_file) as sending,
        ):
            # Late join does not pass the translator.
            assert sent_until_received(sending, receiving) == "hello"


@on_two_hosts
@pytest.mark.rows("T-411", "T-422")
def test_the_sample_of_a_service_on_another_host() -> None:
    """The host 10.29.3.41 of the document, and a client on another host whose interface is chosen by route."""
    client = str(GUIDE / "service_address.cfg")
    with one_network() as (left, right), ExitStack() as stack:
        os.system(f"ip -n {left} addr add 10.29.3.41/24 dev e0")
        arguments = ("srs", "--interface", "10.29.3.41", "--port", "12000", "--json")
        assert stack.enter_context(inside(left, PROGRAM, *arguments)).json_line()["ready"]
        receiver = stack.enter_context(inside(left, PROGRAM, "receive", "orders", "-c", client))
        sender = stack.enter_context(inside(right, PROGRAM, "send", "orders", "-c", client, "-o", "late_join=1"))
        sender.write("hello\n")
        assert receiver.line() == "hello"
