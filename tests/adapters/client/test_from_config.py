"""A context with configuration files: over real stores and a relay, each option as its file has it."""

from pathlib import Path

import pytest

from stablecast.client import Context
from stablecast.config.option_kinds import OptionError
from stablecast.core.errors import ConfigError
from stablecast.core.machine.units import MILLISECOND
from stablecast.core.protocol.settings import AckMode
from stablecast.runtime.interfaces import InterfaceError
from tests.support.configurations import application, document, options, template
from tests.support.network import LOCAL, Events, Network, unused_port


async def relay_of(net: Network) -> str:
    await net.context()
    return net.relays[0].address


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.rows("T-003")
async def test_topics_have_the_options_of_their_sections(net: Network, tmp_path: Path) -> None:
    """Two topics of one file differ in stores, flight and advertising; the application overrides all."""
    relay, store = await relay_of(net), await net.store()
    stored = options("source", ume_store=store, ume_flight_size=7, resolver_advertisement_sustain_interval=700)
    text = document(
        template("base", options("context", resolver_unicast_daemon=relay), options("source", ume_flight_size=5)),
        application(f'<sources><topic pattern="^kept">{stored}</topic></sources>', name="A", using="base"),
    )
    context = await net.stack.enter_async_context(Context.from_config(written(tmp_path / "um.xml", text)))
    kept, plain = await context.source("kept.orders"), await context.source("orders")
    assert [source.config.flight_messages for source in (kept, plain)] == [7, 5]
    assert [len(source.config.stores) for source in (kept, plain)] == [1, 0]
    await (await kept.send(b"x")).stable()
    own = await context.source("kept.quotes", options={"ume_flight_size": 9})
    assert own.config.flight_messages == 9
    receiver = context.receiver("kept.orders", session_id=3)
    message = await anext(aiter(receiver))
    assert message.payload == b"x"


async def test_arguments_override_files(net: Network, tmp_path: Path) -> None:
    """Stores, relays and the session id of the application replace those of the files; options append and replace."""
    relay, store = await relay_of(net), await net.store()
    text = (
        "context resolver_unicast_daemon 127.0.0.1:1\ncontext ume_session_id 5\n"
        "source ume_store 127.0.0.1:1\nsource ume_store_group 0:3\n"
    )
    file = written(tmp_path / "um.cfg", text)
    made = Context.from_config(file, resolver=[relay], session_id=6)
    assert made.resolution.relays == (relay,)
    async with made as context:
        source = await context.source("orders", stores=[store])
        assert [spec.address for spec in source.config.stores] == [store]
        assert (source.config.session_id, source.config.groups.sizes) == (6, (1,))
    async with Context.from_config(file, resolver=[relay]) as context:
        source = await context.source("orders", wait=False)
        assert (source.config.session_id, [spec.address for spec in source.config.stores]) == (5, ["127.0.0.1:1"])


@pytest.mark.rows("T-023", "P-851")
async def test_interface_and_ports_of_a_context(tmp_path: Path) -> None:
    """The request port, the local port of resolution, and a local end for one relay."""
    request, local, end = unused_port(), unused_port(), unused_port()
    text = (
        f"context default_interface 127.0.0.0/8\ncontext request_tcp_port {request}\n"
        f"context resolver_unicast_port_low {local}\ncontext resolver_unicast_port_high {local}\n"
        f"context resolver_unicast_receiver_socket_buffer 65536\n"
        f"context resolver_unicast_daemon 127.0.0.1:{end}->127.0.0.1:9,0.0.0.0:0->127.0.0.1:10\n"
    )
    async with Context.from_config(written(tmp_path / "um.cfg", text)) as context:
        assert context.request_address == f"{LOCAL}:{request}"
        assert context.resolver_port == local
        assert context.resolution.relays == ("127.0.0.1:9", "127.0.0.1:10")
        assert context.resolution.ends["127.0.0.1:9"].port == end


async def test_no_interface_of_this_host_matches(tmp_path: Path) -> None:
    file = written(tmp_path / "um.cfg", "context default_interface 203.0.113.0/24\n")
    with pytest.raises(InterfaceError, match=r"no interface of this host matches '203\.0\.113\.0/24'"):
        Context.from_config(file)


@pytest.mark.rows("P-038")
async def test_without_a_request_port_there_is_no_persistence(net: Network, tmp_path: Path) -> None:
    """A source with stores is refused, and a receiver joins without the stores."""
    store = await net.store()
    file = written(tmp_path / "um.cfg", "context request_tcp_bind_request_port 0\n")
    context = await net.stack.enter_async_context(Context.from_config(file, resolver=[await relay_of(net)]))
    with pytest.raises(ConfigError, match="request_tcp_bind_request_port 0 turns persistence off"):
        await context.source("orders", stores=[store])
    await context.source("orders")
    assert not context.receiver("orders").config.use_store


async def test_rules_of_a_file_hold_for_the_application(net: Network, tmp_path: Path) -> None:
    rules = '<sources order="allow,deny"><topic topicname="orders" rule="allow"/></sources>'
    limited = (
        '<options type="source"><option name="ume_flight_size" order="deny,allow"><deny>9</deny></option></options>'
    )
    file = written(tmp_path / "um.xml", document("", application(rules, limited)))
    context = await net.stack.enter_async_context(Context.from_config(file, resolver=[await relay_of(net)]))
    await context.source("orders")
    with pytest.raises(OptionError, match="the topic 'quotes' is not permitted for a source"):
        await context.source("quotes")
    with pytest.raises(OptionError, match="option ume_flight_size may not be '9'"):
        await context.source("orders", options={"ume_flight_size": 9})


@pytest.mark.rows("P-345", "P-411")
async def test_contradictions_are_logged(net: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those in a file, and those between a file and the application."""
    file = written(tmp_path / "um.cfg", "receiver ume_explicit_ack_only 1\nsource late_join 0\n")
    context = await net.stack.enter_async_context(Context.from_config(file, resolver=[await relay_of(net)]))
    context.receiver("orders", options={"ume_use_ack_batching": 1})
    assert "ume_use_ack_batching, the last one, counts" in caplog.messages[-1]
    await context.source("orders", stores=[await net.store()], on_event=Events())
    assert caplog.messages[-1].startswith("option late_join 0 contradicts the stores")


async def test_the_environment_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "um.cfg", "context default_interface 127.0.0.1\n")
    monkeypatch.setenv("STABLECAST_CONFIG", str(file))
    assert Context.from_config().config.default_interface == LOCAL
    assert Context.from_config(environment=False).config.default_interface == ""
    assert Context().config.default_interface == ""


@pytest.mark.rows("P-589", "T-003")
async def test_a_pattern_has_the_options_of_its_scope(net: Network, tmp_path: Path) -> None:
    """Options of receivers hold for the topics of a pattern, and those of wildcard receivers for its queries."""
    text = "receiver ume_use_ack_batching 0\nwildcard_receiver resolver_query_maximum_interval 700\n"
    file = written(tmp_path / "um.cfg", text)
    context = await net.stack.enter_async_context(Context.from_config(file, resolver=[await relay_of(net)]))
    wildcard = context.receiver(pattern="^or")
    assert wildcard.settings.query.pace.longest == 700 * MILLISECOND
    assert wildcard._make("orders").config.ack_mode is AckMode.IMMEDIATE
