"""The files of routers: the documented form, TOML, access lists, options of portals, and wrong files."""

import re
from pathlib import Path

import pytest

from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.config.findings import ConfigFileError
from stablecast.config.transport_options import Transport
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.router.config import (
    NumberWindow,
    PortalConfig,
    RecordRate,
    RouteMessages,
    RouterConfig,
    UseQueries,
)
from stablecast.router.router_files import load
from stablecast.transports.routing.access import AccessEntry, Condition, Subject

XML = """<?xml version="1.0" encoding="UTF-8" ?>
<tnw-gateway version="1.0">
  <daemon>
    <name>edge</name>
    <log type="file" size="10" frequency="daily">edge.log</log>
    <uid>17</uid>
    <pidfile>edge.pid</pidfile>
    <web-monitor>127.0.0.1:15305</web-monitor>
  </daemon>
  <portals>
    <endpoint>
      <name>left</name>
      <domain-id>1</domain-id>
      <cost>3</cost>
      <source-deletion-delay>250</source-deletion-delay>
      <max-queue>2,000,000</max-queue>
      <lbm-attributes>
        <option name="resolver_unicast_daemon" scope="context" value="127.0.0.1:15380"/>
        <option name="transport" scope="source" value="lbt-ru"/>
      </lbm-attributes>
      <acl>
        <inbound>
          <ace match="reject">
            <pcre-pattern>^private</pcre-pattern>
            <transport comparison="equal" value="lbtrm"/>
          </ace>
          <ace match="accept"><source-ip comparison="lessthan" value="10.0.0.9"/></ace>
        </inbound>
        <outbound><ace match="accept"><topic xml:space="preserve"> orders</topic></ace></outbound>
      </acl>
      <topic-resolution>
        <domain-route min-interval="50" max-interval="2000"><rate-limit objects-per-second="7"/></domain-route>
        <topic-use-query max="4" periodic-interval="60000" timeout="500"><rate-limit bps="9"/></topic-use-query>
      </topic-resolution>
      <sqn-window size="64" increment="16"/>
    </endpoint>
    <endpoint>
      <name>right</name>
      <domain-id>2</domain-id>
    </endpoint>
  </portals>
</tnw-gateway>
"""

TOML = """
[daemon]
name = "edge"
log = { path = "edge.log", type = "file", size = 10, frequency = "daily" }
uid = 17
pidfile = "edge.pid"
web-monitor = { address = "127.0.0.1:15305" }

[[portals.endpoint]]
name = "left"
domain-id = 1
cost = 3
source-deletion-delay = 250
max-queue = 2_000_000
sqn-window = { size = 64, increment = 16 }
context = { resolver_unicast_daemon = "127.0.0.1:15380" }
source = { transport = "lbt-ru" }

[portals.endpoint.topic-resolution]
domain-route = { min-interval = 50, max-interval = 2000, rate-limit = { objects-per-second = 7 } }
topic-use-query = { max = 4, periodic-interval = 60000, timeout = 500, rate-limit = { bps = 9 } }

[[portals.endpoint.acl.inbound.ace]]
match = "reject"
pcre-pattern = "^private"
transport = { comparison = "equal", value = "lbtrm" }

[[portals.endpoint.acl.inbound.ace]]
match = "accept"
source-ip = { comparison = "lessthan", value = "10.0.0.9" }

[[portals.endpoint.acl.outbound.ace]]
match = "accept"
topic = { path = " orders" }

[[portals.endpoint]]
name = "right"
domain-id = 2
"""


def write(tmp_path: Path, text: str, name: str = "router.xml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def with_portal(tmp_path: Path, elements: str, daemon: str = "") -> RouterConfig:
    """The configuration of a router whose first portal has these elements, too."""
    return load(write(tmp_path, portal_text(elements, daemon)))


def portal_text(elements: str, daemon: str = "") -> str:
    return f"""<tnw-gateway version="1.0"><daemon>{daemon}</daemon><portals>
<endpoint><name>left</name><domain-id>1</domain-id>
{elements}
</endpoint>
<endpoint><name>right</name><domain-id>2</domain-id></endpoint></portals></tnw-gateway>"""


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigFileError) as refused:
        load(path)
    return str(refused.value).splitlines()


@pytest.mark.rows("R-270", "R-272", "R-276", "R-277", "R-278")
@pytest.mark.parametrize(("text", "name"), [(XML, "router.xml"), (TOML, "router.toml")])
def test_both_forms_of_one_router(tmp_path: Path, text: str, name: str) -> None:
    path = write(tmp_path, text, name)
    config = load(path)
    assert kind_of(path) is FileKind.ROUTER
    assert (config.name, config.daemon.uid, config.daemon.pidfile) == ("edge", 17, Path("edge.pid"))
    assert (config.daemon.log.path, config.daemon.log.size) == (Path("edge.log"), 10)
    assert config.daemon.monitor is not None
    assert config.daemon.monitor.port == 15305
    assert config.notices == ()
    left, right = config.portals
    assert (left.name, left.domain, left.cost, left.max_queue_bytes) == ("left", 1, 3, 2_000_000)
    assert (left.source_deletion_delay_ns, left.window) == (250 * MILLISECOND, NumberWindow(64, 16))
    assert left.times.routes == RouteMessages(50 * MILLISECOND, 2 * SECOND, RecordRate(0, 7))
    assert left.times.topic_uses == UseQueries(60 * SECOND, 500 * MILLISECOND, 4, RecordRate(9, 500))
    assert left.inbound == (
        AccessEntry(False, (Condition(Subject.PCRE, "^private"), Condition(Subject.TRANSPORT, "lbt-rm"))),
        AccessEntry(True, (Condition(Subject.SOURCE_ADDRESS, 0x0A000009, "lt"),)),
    )
    assert left.resolution.relays == ("127.0.0.1:15380",)
    assert (left.transport().kind, right.transport().kind) == (Transport.LBTRU, Transport.TCP)


def test_blanks_of_a_topic_are_kept_if_the_file_says_so(tmp_path: Path) -> None:
    left = load(write(tmp_path, XML)).portals[0]
    assert left.outbound == (AccessEntry(True, (Condition(Subject.TOPIC, " orders"),)),)


@pytest.mark.rows("R-033", "R-278")
def test_documented_defaults(tmp_path: Path) -> None:
    right = load(write(tmp_path, XML)).portals[1]
    assert right == PortalConfig(name="right", domain=2, options=right.options)
    times = right.times
    assert (times.initial.duration_ns, times.initial.interval_ns) == (10 * SECOND, SECOND)
    assert (times.topic_uses.interval_ns, times.topic_uses.timeout_ns, times.topic_uses.tries) == (
        300 * SECOND,
        3 * SECOND,
        5,
    )
    assert times.topic_uses.longest_ns == 315 * SECOND
    assert (times.topic_uses.rate, times.routes.rate) == (RecordRate(500_000, 500), RecordRate(0, 50))
    assert (right.cost, right.max_queue_bytes, right.window) == (1, 1_000_000, NumberWindow(16_384, 2_048))
    assert right.inbound is right.outbound is None


@pytest.mark.rows("R-118")
def test_the_healing_time_of_documented_times(tmp_path: Path) -> None:
    assert load(write(tmp_path, XML.replace('max-interval="2000"', ""))).healing_ns == 11_500 * MILLISECOND


def test_the_name_of_a_router_without_one_is_that_of_its_file(tmp_path: Path) -> None:
    text = portal_text("")
    assert load(write(tmp_path, text, "site-a.xml")).name == "site-a"


def test_a_patterns_language_is_translated(tmp_path: Path) -> None:
    text = '<acl><inbound><ace match="accept"><regex-pattern>a[[:digit:]]</regex-pattern></ace></inbound></acl>'
    inbound = with_portal(tmp_path, text).portals[0].inbound
    assert inbound == (AccessEntry(True, (Condition(Subject.REGEX, "a[0-9]"),)),)


@pytest.mark.rows("R-138", "R-280")
@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ("<late-join provide-late-join='yes'/>", "<late-join>: late-join has no effect"),
        ("<topic-purge periodic-ivl='3'><x/></topic-purge>", "<topic-purge>: topic-purge has no effect"),
        ("<smart-batch>0</smart-batch>", "a batch leaves when nothing else waits"),
        ("<remote-topic timeout='9000'/>", "routers tell each other changes at once"),
        ("<route-group>3</route-group>", "there are no hotlinks"),
        ("<publishing-interval><group name='default' ivl='3'/></publishing-interval>", "/metrics"),
    ],
)
def test_what_has_no_effect_is_named(tmp_path: Path, elements: str, reason: str) -> None:
    (notice,) = with_portal(tmp_path, elements).notices
    assert notice.place.line == 3
    assert reason in notice.told("")


@pytest.mark.rows("R-174", "R-294")
@pytest.mark.parametrize("name", ["monitor", "daemon-monitor", "topicmap", "patternmap"])
def test_elements_of_the_daemon_without_effect_are_named(tmp_path: Path, name: str) -> None:
    (notice,) = with_portal(tmp_path, "", f"<{name}/>").notices
    assert notice.text.startswith(f"{name} has no effect: ")


@pytest.mark.rows("R-286")
def test_a_licence_is_not_needed(tmp_path: Path) -> None:
    (notice,) = with_portal(tmp_path, "", "<lbm-license-file>x</lbm-license-file>").notices
    assert "no licence is needed" in notice.text


def test_lines_for_syslog_go_to_the_console(tmp_path: Path) -> None:
    config = with_portal(tmp_path, "", '<log type="syslog"/>')
    assert config.daemon.log.path is None
    assert "syslog" in config.notices[0].text


@pytest.mark.rows("R-273")
@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ("<cost>0</cost>", "<cost>: option cost must lie between 1"),
        ("<hotlink-index>3</hotlink-index>", "<hotlink-index>: there are no hotlinks"),
        ("<sqn-window size='100' increment='10'/>", "<sqn-window>: size 100 must be a multiple of increment 10"),
        ("<sqn-window size='64' increment='64'/>", "the increment the smaller one"),
        ("<max-queue>3</max-queue><max-queue>4</max-queue>", "<max-queue>: max-queue is repeated"),
        ("<lbm-config>missing.cfg</lbm-config>", "<lbm-config>: .*missing.cfg"),
        (
            '<lbm-attributes><option scope="source" name="transprt" value="tcp"/></lbm-attributes>',
            "<option>: there is no source option 'transprt'",
        ),
        (
            '<topic-resolution><domain-route min-interval="3" max-interval="2"/></topic-resolution>',
            "<domain-route>: min-interval is above max-interval",
        ),
        (
            '<acl><outbound><ace match="accept"><transport comparison="eq" value="tcp"/></ace></outbound></acl>',
            "outbound",
        ),
        ('<acl><inbound><ace match="accept"><xport-id comparison="eq" value="1"/></ace></inbound></acl>', "LBT-IPC"),
        (
            '<acl><inbound><ace match="accept"><transport comparison="lt" value="tcp"/></ace></inbound></acl>',
            "eq or ne",
        ),
        (
            '<acl><inbound><ace match="accept"><source-ip comparison="is" value="1.2.3.4"/></ace></inbound></acl>',
            "'is'",
        ),
        ('<acl><inbound><ace match="accept"><source-ip comparison="eq" value="1.2.3"/></ace></inbound></acl>', "IPv4"),
        ('<acl><inbound><ace match="accept"><pcre-pattern>(</pcre-pattern></ace></inbound></acl>', "expression"),
        ('<acl><inbound><ace match="accept"><topic/></ace></inbound></acl>', "write the topic"),
    ],
)
def test_a_wrong_portal_is_refused_with_its_line(tmp_path: Path, elements: str, reason: str) -> None:
    (line,) = problems(write(tmp_path, portal_text(elements)))
    assert ":3: <" in line
    assert re.search(reason, line)


@pytest.mark.rows("R-099", "R-282", "R-285")
def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    text = portal_text("<cost>0</cost><hotlink-index>1</hotlink-index>").replace(">right<", ">left<")
    text = text.replace(">2<", ">1<")
    found = problems(write(tmp_path, text))
    assert [line.partition("<")[2].partition(">")[0] for line in found] == [
        "cost",
        "hotlink-index",
        "endpoint",
        "endpoint",
    ]
    assert "two portals have the name 'left'" in found[2]
    assert "two portals have the domain '1'" in found[3]


def test_a_problem_of_a_table_has_its_keys(tmp_path: Path) -> None:
    text = TOML.replace("domain-id = 2", "domain-id = 0").replace("increment = 16", "increments = 16")
    (first, *_) = problems(write(tmp_path, text, "router.toml"))
    assert "portals.endpoint.0.sqn-window" in first
    (found,) = problems(write(tmp_path, TOML.replace("domain-id = 2", "domain-id = 0"), "router.toml"))
    assert "router.toml:portals.endpoint.1.domain-id: option domain-id must lie between 1" in found


WRONG_TABLES = """
[[portals.endpoint]]
name = "left"
domain-id = 1
context = { resolver_unicast_daemon = "10.300.3.4:15380" }
source = { transport = "smoke" }

[[portals.endpoint]]
name = "right"
domain-id = 2
context = { default_interface = "10.9.999.1", resolver_multicast_address = "10.0.3.4" }

[[portals.endpoint]]
name = "third"
domain-id = 3
context = { resolver_unicast_daemon = "10.0.3.4:15380", request_tcp_port_low = 15000, request_tcp_port_high = 14000 }
"""


def test_each_wrong_option_is_named_once_by_its_keys(tmp_path: Path) -> None:
    """The address of a relay counts for resolution, for the context, and by itself."""
    found = [line.split(": ")[0].rpartition(":")[2] for line in problems(write(tmp_path, WRONG_TABLES, "router.toml"))]
    assert found == [
        "portals.endpoint.0.context.resolver_unicast_daemon",
        "portals.endpoint.0.source.transport",
        "portals.endpoint.1.context.resolver_multicast_address",
        "portals.endpoint.1",
        "portals.endpoint.2",
    ]
    wrong = '<option scope="context" name="resolver_unicast_daemon" value="10.300.3.4:1"/>'
    (told,) = problems(write(tmp_path, portal_text(f"<lbm-attributes>{wrong}</lbm-attributes>")))
    assert "<option>" in told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{'a.' * 5_000}b = 1", "tables deep"),
        ('portals = { endpoint = { "a b" = 1 } }', "such characters"),
        ('portals = { endpoint = { name = "a\\u0000" } }', "such characters"),
        ('daemon = { log = { size = "\\u0001" } }', "such characters"),
        ('portals = { endpoint = { "{x}y" = 1 } }', "declaration"),
        ("portals = 3", "endpoint"),
        ("portals = [[[3]]]", "endpoint"),
        ("portals.endpoint = [1, 2, 3]", "endpoint"),
        ("portals.endpoint.domain-id = 1e400", "domain-id"),
        ("portals.endpoint.domain-id = [1, 2]", "repeated"),
    ],
)
def test_hostile_tables_are_refused_with_their_keys(tmp_path: Path, text: str, reason: str) -> None:
    assert any(reason in line for line in problems(write(tmp_path, text, "router.toml")))


def test_a_portal_needs_a_name_and_a_domain_and_company(tmp_path: Path) -> None:
    text = '<tnw-gateway version="1.0"><portals><endpoint/></portals></tnw-gateway>'
    assert [line.rpartition(": ")[2] for line in problems(write(tmp_path, text))] == [
        "the portal has no name",
        "the portal has no domain-id",
        "a router has 2 portals at least, one for each domain and each router that it joins",
    ]


@pytest.mark.rows("R-101")
def test_portals_are_not_counted(tmp_path: Path) -> None:
    portals = "".join(
        f"<endpoint><name>p{number}</name><domain-id>{number}</domain-id></endpoint>" for number in range(1, 301)
    )
    text = f'<tnw-gateway version="1.0"><portals>{portals}</portals></tnw-gateway>'
    assert len(load(write(tmp_path, text)).portals) == 300


IDLE = """<peer><name>p</name><batching><min-length>9</min-length></batching><max-datagram>9</max-datagram><single-tcp>
<acceptor><listen-port>7</listen-port></acceptor><receive-buffer>9</receive-buffer><send-buffer>9</send-buffer>
<keepalive/><nodelay/></single-tcp><gateway-keepalive idle="no"/></peer>"""


@pytest.mark.rows("R-135", "R-136", "R-137", "R-139")
def test_what_has_no_effect_on_a_link_is_named(tmp_path: Path) -> None:
    """R-135 to R-139."""
    notices = load(write(tmp_path, with_links(IDLE))).notices
    assert {one.text.partition(" ")[0] for one in notices} == {
        "max-datagram",
        "batching",
        "receive-buffer",
        "send-buffer",
        "keepalive",
        "nodelay",
        "idle",
    }


LINKS = """
<peer><name>north</name><cost>3</cost><single-tcp><interface>127.0.0.1</interface><acceptor>
  <listen-port>26123</listen-port></acceptor></single-tcp><gateway-keepalive interval="500" timeout="2000"/>
  <acl><outbound><ace match="accept"><topic>orders</topic></ace></outbound></acl></peer>
<peer><name>south</name><sourcemap size="9"/><single-tcp><initiator><address>edge.example</address>
  <port>26124</port></initiator><nodelay/></single-tcp><sqn-window size="4096" increment="1024"/></peer>
"""


def with_links(links: str) -> str:
    return XML.replace("</portals>", f"{links}</portals>")


@pytest.mark.rows("R-130", "R-279")
def test_peer_portals(tmp_path: Path) -> None:
    """R-130, R-279: one side listens and the other connects; what has no effect is named."""
    config = load(write(tmp_path, with_links(LINKS)))
    north, south = config.peers
    assert (north.name, north.cost, north.interface, north.address, north.port) == ("north", 3, "127.0.0.1", "", 26_123)
    assert (north.signs.interval_ns, north.signs.timeout_ns) == (SECOND // 2, 2 * SECOND)
    assert north.outbound is not None
    assert (south.address, south.port, south.window.size) == ("edge.example", 26_124, 4_096)
    assert [one.text.partition(" ")[0] for one in config.notices] == ["sourcemap", "nodelay"]


def test_peer_portals_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "router.toml"
    path.write_text(
        """
[[portals.endpoint]]
name = "home"
domain-id = 1
context = { resolver_unicast_daemon = "127.0.0.1:15380" }

[[portals.peer]]
name = "north"
single-tcp.initiator = { address = "10.30.0.7", port = 14380 }
gateway-keepalive = { interval = 500 }

[[portals.peer]]
name = "south"
single-tcp.acceptor.listen-port = 14381
"""
    )
    north, south = load(path).peers
    assert (north.address, north.port, north.signs.interval_ns) == ("10.30.0.7", 14_380, SECOND // 2)
    assert (south.address, south.port) == ("", 14_381)


@pytest.mark.rows("R-131", "R-147")
@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("<tcp/>", "two connections"),
        ("<udp/>", "no UDP beside it"),
        ("<single-tcp><tls/><acceptor><listen-port>1</listen-port></acceptor></single-tcp>", "STABLECAST_TLS"),
        ("<single-tcp><compression/><acceptor><listen-port>1</listen-port></acceptor></single-tcp>", "not compressed"),
        ("<single-tcp/>", "one initiator"),
        ("<single-tcp><initiator><port>7</port></initiator></single-tcp>", "no address"),
        ("<single-tcp><acceptor><listen-port>0</listen-port></acceptor></single-tcp>", "the port"),
    ],
)
def test_a_link_that_cannot_work_is_refused(tmp_path: Path, link: str, reason: str) -> None:
    """R-131, R-147."""
    (line,) = problems(write(tmp_path, with_links(f"<peer><name>p</name>{link}</peer>")))
    assert reason in line


def test_two_portals_cannot_listen_at_one_port(tmp_path: Path) -> None:
    listening = "<single-tcp><acceptor><listen-port>26123</listen-port></acceptor></single-tcp>"
    peers = "".join(f"<peer><name>p{one}</name>{listening}</peer>" for one in range(2))
    (line,) = problems(write(tmp_path, with_links(peers)))
    assert "listen-port" in line


@pytest.mark.parametrize("text", [XML.replace('version="1.0">', 'version="2.0">'), XML.replace(' version="1.0">', ">")])
def test_another_version_is_refused(tmp_path: Path, text: str) -> None:
    assert "version" in problems(write(tmp_path, text))[0]


@pytest.mark.rows("R-281")
def test_the_order_of_options(tmp_path: Path) -> None:
    """xml-config wins over lbm-attributes, and these over lbm-config."""
    flat, tree = tmp_path / "flat.cfg", tmp_path / "um.xml"
    flat.write_text("context request_tcp_port_low 1\ncontext request_tcp_port_high 9001\nsource transport tcp\n")
    tree.write_text("""<um-configuration version="1.0"><applications><application name="tnwgd"><contexts>
<context name="left"><sources/><options type="context"><option name="request_tcp_port_low" default-value="3"/></options>
<options type="source"><option name="transport" default-value="lbtru"/></options>
</context></contexts></application></applications></um-configuration>""")
    attributes = "".join(
        f'<option scope="{scope}" name="{name}" value="{value}"/>'
        for scope, name, value in (("context", "request_tcp_port_low", 2), ("source", "transport", "lbtrm"))
    )
    elements = f"<lbm-config>{flat}</lbm-config><lbm-attributes>{attributes}</lbm-attributes>"
    below = with_portal(tmp_path, elements).portals[0]
    assert (below.context.low, below.context.high, below.transport().kind) == (2, 9001, Transport.LBTRM)
    names = "<source-context-name>left</source-context-name><receiver-context-name>left</receiver-context-name>"
    above = with_portal(tmp_path, elements + names, f"<xml-config>{tree}</xml-config>").portals[0]
    assert (above.context.low, above.context.high, above.transport().kind) == (3, 9001, Transport.LBTRU)


@pytest.mark.rows("R-068")
def test_a_topic_has_its_own_options(tmp_path: Path) -> None:
    flat = tmp_path / "um.toml"
    flat.write_text('[[topic]]\npattern = "^fast"\nsource = { transport = "lbtrm" }\n')
    portal = with_portal(tmp_path, f"<lbm-config>{flat}</lbm-config>").portals[0]
    assert (portal.transport("fast.1").kind, portal.transport("slow").kind) == (Transport.LBTRM, Transport.TCP)


@pytest.mark.rows("R-282")
def test_a_wrong_line_of_an_option_file_is_left_out_with_a_notice(tmp_path: Path) -> None:
    flat = tmp_path / "flat.cfg"
    flat.write_text("source transprt tcp\ncontext resolver_unicast_daemon 127.0.0.1:1\nnonsense\n")
    config = with_portal(tmp_path, f"<lbm-config>{flat}</lbm-config>")
    assert config.portals[0].resolution.relays == ("127.0.0.1:1",)
    assert [notice.place.line for notice in config.notices] == [3, 1]
    assert all(notice.place.path == str(flat) for notice in config.notices)


@pytest.mark.rows("R-283")
def test_parts_of_a_file_may_stand_in_another_one(tmp_path: Path) -> None:
    write(tmp_path, '<acl><inbound><ace match="accept"><topic>a</topic></ace></inbound></acl>', "acl.xml")
    include = f'<xi:include xmlns:xi="http://www.w3.org/2003/XInclude" href="{tmp_path}/acl.xml"/>'
    assert with_portal(tmp_path, include).portals[0].inbound == (AccessEntry(True, (Condition(Subject.TOPIC, "a"),)),)
    far = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="http://example.com/acl.xml"/>'
    assert "only those are included" in problems(write(tmp_path, portal_text(far)))[0]


@pytest.mark.rows("R-272")
@pytest.mark.parametrize(
    ("comparison", "holds"), [("eq", False), ("ne", True), ("lt", True), ("le", True), ("gt", False)]
)
def test_a_condition_compares(comparison: str, holds: bool) -> None:
    assert Condition(Subject.TCP_SOURCE, 100, comparison).holds({Subject.TCP_SOURCE: 99}) is holds
