"""What `stablecast check` says of routers alone, of several, and of the stores and clients beside them."""

import json
import re
from pathlib import Path

import pytest

from stablecast.cli import check
from stablecast.router.elements import UNUSED, UNUSED_OF_PEERS
from stablecast.router.log_lines import DROPS, PUBLISHED, UNICAST_DROPS
from stablecast.router.router_files import PEER, PORTAL, PORTAL_ATTRIBUTES, ROUTES
from tests.support.tree import ROOT

RELAY = '<option name="resolver_unicast_daemon" scope="context" value="127.0.0.1:{port}"/>'


def portal(number: int, inside: str = "", *, options: str = "", relay: int = 0) -> str:
    """A portal in a domain of its own, whose relay has the number of the domain unless another one is given."""
    attributes = f"<lbm-attributes>{RELAY.format(port=relay or number)}{options}</lbm-attributes>"
    return f"<endpoint><name>p{number}</name><domain-id>{number}</domain-id>{attributes}{inside}</endpoint>"


def router(*portals: str, name: str = "r", daemon: str = "") -> str:
    joined = "".join(portals or (portal(1), portal(2)))
    own = f"<daemon><name>{name}</name>{daemon}</daemon>"
    return f'<tnw-gateway version="1.0">{own}<portals>{joined}</portals></tnw-gateway>'


class Findings:
    def __init__(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._place = tmp_path
        self._capsys = capsys

    def of(self, *texts: str, client: str = "", toml: str = "") -> dict[str, tuple[str, str]]:
        """Return level and sentence by code, of these routers, and of a client or a store beside them."""
        paths = []
        for number, text in enumerate(texts):
            paths.append(self._place / f"router{number}.xml")
            paths[-1].write_text(text, encoding="utf-8")
        for name, content in (("um.cfg", client), ("stores.toml", toml)):
            if content:
                paths.append(self._place / name)
                paths[-1].write_text(content, encoding="utf-8")
        check.run(paths, "safe", True)
        found = json.loads(self._capsys.readouterr().out)["advice"]
        return {one["code"]: (one["level"], f"{one['where']}: {one['text']}") for one in found}


@pytest.fixture
def findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Findings:
    return Findings(tmp_path, capsys)


def option(scope: str, name: str, value: object) -> str:
    return f'<option name="{name}" scope="{scope}" value="{value}"/>'


def test_a_sound_router_has_no_findings(findings: Findings) -> None:
    assert findings.of(router()) == {}


def test_a_wrong_file_is_a_finding_with_its_line(findings: Findings) -> None:
    level, text = findings.of(router(portal(1, "<cost>0</cost>"), portal(2)))["invalid"]
    assert (level, "router0.xml:1: <cost>" in text) == ("error", True)


@pytest.mark.rows("R-285")
def test_names_of_routers_are_unique(findings: Findings) -> None:
    assert findings.of(router(), router(portal(3), portal(4)))["router-name"][0] == "error"
    assert "router-name" not in findings.of(router(), router(portal(3), portal(4), name="other"))


@pytest.mark.rows("R-002")
def test_one_domain_has_one_number(findings: Findings) -> None:
    level, text = findings.of(router(portal(1), portal(2, relay=1)))["domain-twice"]
    assert (level, "their numbers are 2 and 1" in text) == ("error", True)
    assert "domain-twice" in findings.of(router(), router(portal(3, relay=1), portal(4), name="other"))


def test_an_option_does_not_contradict_the_number_of_a_portal(findings: Findings) -> None:
    same, other = (portal(2, options=option("context", "resolver_domain_id", number)) for number in (2, 3))
    assert findings.of(router(portal(1), other))["domain-id"][0] == "error"
    assert "domain-id" not in findings.of(router(portal(1), same))


@pytest.mark.rows("R-002")
def test_one_number_is_of_one_domain(findings: Findings) -> None:
    assert findings.of(router(), router(portal(1, relay=9), portal(4), name="other"))["domain-number"][0] == "error"


def test_a_second_router_of_a_domain_is_named(findings: Findings) -> None:
    assert findings.of(router(), router(portal(1), portal(4), name="other"))["second-router"][0] == "warning"


def test_a_portal_without_a_resolver_is_an_error(findings: Findings) -> None:
    bare = "<endpoint><name>p1</name><domain-id>1</domain-id></endpoint>"
    assert findings.of(router(bare, portal(2)))["no-resolver"][0] == "error"


@pytest.mark.rows("R-175")
def test_request_ports_are_counted(findings: Findings) -> None:
    many = [portal(number) for number in range(1, 7)]
    level, text = findings.of(router(*many))["few-ports"]
    assert (level, "6 portals share 5 request ports" in text) == ("warning", True)
    wide = [portal(number, options=option("context", "request_tcp_port_high", 20_000)) for number in range(1, 7)]
    assert "few-ports" not in findings.of(router(*wide))


@pytest.mark.rows("R-011", "R-161")
def test_datagram_sizes_are_equal(findings: Findings) -> None:
    size = option("context", "resolver_datagram_max_size", 1_000)
    assert "datagram-sizes" in findings.of(router(portal(1, options=size), portal(2)))
    kinds = [
        option("source", "transport", "lbtrm") + option("context", "transport_lbtrm_datagram_max_size", bytes_)
        for bytes_ in (8_192, 1_472)
    ]
    found = findings.of(router(portal(1, options=kinds[0]), portal(2, options=kinds[1])))
    assert "8192 and 1472 bytes" in found["datagram-sizes"][1]


@pytest.mark.rows("R-161")
def test_fragments_that_cannot_leave_are_named_before_the_first_drop(findings: Findings) -> None:
    text = router(portal(1), portal(2, options=option("source", "transport", "lbtru")))
    level, said = findings.of(text, client="source ume_flight_size 1000\n")["fragments-too-large"]
    assert (level, "65535 bytes" in said) == ("warning", True)
    assert "fragments-too-large" not in findings.of(text, client="source transport lbtrm\n")


@pytest.mark.rows("R-273")
@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ("<topic>a</topic><topic>b</topic>", "no source has two values of topic"),
        (
            '<transport comparison="eq" value="tcp"/><multicast-group comparison="eq" value="224.1.1.1"/>',
            "no transport has all",
        ),
        ('<transport comparison="eq" value="lbt-ipc"/>', "no transport has all"),
        ('<tcp-source-port comparison="gt" value="1"/><udp-source-port comparison="gt" value="1"/>', "no transport"),
    ],
)
def test_an_entry_that_never_applies_is_an_error(conditions: str, reason: str, findings: Findings) -> None:
    acl = f'<acl><inbound><ace match="accept">{conditions}</ace></inbound></acl>'
    level, text = findings.of(router(portal(1, acl), portal(2)))["access-never"]
    assert (level, reason in text) == ("error", True)


@pytest.mark.parametrize(
    "conditions",
    [
        "<topic>a</topic><pcre-pattern>b</pcre-pattern>",
        '<transport comparison="ne" value="tcp"/><udp-source-port comparison="gt" value="1"/>',
        '<multicast-group comparison="ne" value="224.1.1.1"/>',
    ],
)
def test_an_entry_that_may_apply_is_none(conditions: str, findings: Findings) -> None:
    acl = f'<acl><inbound><ace match="accept">{conditions}</ace></inbound></acl>'
    assert "access-never" not in findings.of(router(portal(1, acl), portal(2)))


def test_a_list_that_lets_nothing_pass_and_entries_behind_all_are_named(findings: Findings) -> None:
    acl = '<acl><inbound><ace match="reject"/><ace match="reject"><topic>a</topic></ace></inbound></acl>'
    assert {"access-nothing", "access-unreached"} <= findings.of(router(portal(1, acl), portal(2))).keys()


@pytest.mark.rows("R-302")
@pytest.mark.parametrize(
    ("portal_inside", "code"),
    [
        (
            '<topic-resolution><topic-use-query periodic-interval="9000" timeout="3000"/></topic-resolution>',
            "use-queries",
        ),
        ("<source-deletion-delay>60000</source-deletion-delay>", "deletion-delay"),
    ],
)
def test_times_that_do_not_fit_are_named(portal_inside: str, code: str, findings: Findings) -> None:
    text = router(portal(1, portal_inside, options=option("source", "transport", "lbtrm")), portal(2))
    assert findings.of(text)[code][0] == "warning"


@pytest.mark.rows("R-302")
def test_times_between_routers_fit(findings: Findings) -> None:
    assert "route-timeout" in findings.of(router(daemon='<route-info timeout="3000"/>'))


@pytest.mark.rows("R-233")
def test_receiver_liveness_is_refused_with_routers(findings: Findings) -> None:
    text = "receiver ume_receiver_liveness_interval 1000\n"
    assert findings.of(router(), client=text)["liveness-with-router"][0] == "error"
    assert "liveness-with-router" not in findings.of(client=text)


@pytest.mark.rows("R-029")
def test_queries_must_not_be_off_over_udp(findings: Findings) -> None:
    off = "receiver resolver_query_minimum_initial_interval 0\nreceiver resolver_query_sustain_interval 0\n"
    relay = "context resolver_unicast_daemon 127.0.0.1:1\n"
    assert findings.of(router(), client=f"{relay}{off}")["queries-off"][0] == "error"
    assert "queries-off" not in findings.of(router(), client=relay)
    assert "queries-off" not in findings.of(router(), client=f"context resolver_service 127.0.0.1:1\n{off}")


@pytest.mark.rows("R-182")
def test_recovery_is_advised_with_routers(findings: Findings) -> None:
    assert findings.of(router(), client="receiver use_otr 0\n")["no-recovery-with-router"][0] == "advice"


@pytest.mark.rows("R-239")
def test_activity_timeouts_outlast_the_healing_of_routes(findings: Findings) -> None:
    """The documented default of a source, 10 s, ends before routes are back."""
    client = "source ume_store 127.0.0.1:14567:1\nsource ume_store_activity_timeout {}\n"
    level, text = findings.of(router(), client=client.format(10_000))["below-healing"]
    assert (level, "10 s is not above the 11.5 s" in text) == ("warning", True)
    assert "below-healing" not in findings.of(router(), client=client.format(12_000))


STORE = """
[[store]]
name = "a"
port = 14567
interface = "127.0.0.1"
options = { disk-cache-directory = "DIRECTORY", disk-state-directory = "DIRECTORY" }
context = { RESOLVER }
[[store.topic]]
pattern = "."
type = "PCRE"
options = { receiver-activity-timeout = TIMEOUT }
"""


def store(tmp_path: Path, *, resolver: str = 'resolver_unicast_daemon = "127.0.0.1:1"', timeout: int = 12_000) -> str:
    text = STORE.replace("DIRECTORY", str(tmp_path)).replace("RESOLVER", resolver)
    return text.replace("TIMEOUT", str(timeout))


@pytest.mark.rows("R-239")
def test_stores_are_checked_against_the_healing_time(tmp_path: Path, findings: Findings) -> None:
    found = findings.of(router(), toml=store(tmp_path, timeout=11_000))
    assert "receiver-activity-timeout 11 s" in found["below-healing"][1]
    assert "below-healing" not in findings.of(router(), toml=store(tmp_path))


@pytest.mark.rows("R-111")
def test_a_store_takes_part_in_resolution_to_learn_routes(tmp_path: Path, findings: Findings) -> None:
    assert findings.of(router(), toml=store(tmp_path, resolver=""))["store-without-routes"][0] == "error"
    assert "store-without-routes" not in findings.of(router(), toml=store(tmp_path))


def test_the_process_of_a_router_is_checked_like_that_of_stores(findings: Findings) -> None:
    daemon = "<pidfile>/nowhere/r.pid</pidfile><web-monitor>0.0.0.0:1</web-monitor>"
    assert {"monitor-exposed", "no-log-file", "no-directory"} <= findings.of(router(daemon=daemon)).keys()


def link(name: str, end: str, more: str = "") -> str:
    return f"<peer><name>{name}</name><single-tcp><interface>127.0.0.1</interface>{end}</single-tcp>{more}</peer>"


def listens(port: int) -> str:
    return f"<acceptor><listen-port>{port}</listen-port></acceptor>"


def calls(port: int, address: str = "127.0.0.1") -> str:
    return f"<initiator><address>{address}</address><port>{port}</port></initiator>"


@pytest.mark.rows("R-099")
def test_links_that_cannot_work_are_found(findings: Findings) -> None:
    first = router(portal(1), link("a", listens(7001)), link("b", listens(7002)), name="first")
    second = router(portal(2), link("a", calls(7001)), name="second")
    assert findings.of(first, second) == {}
    twice = router(portal(2), link("a", calls(7001)), link("b", calls(7002)), name="second")
    assert findings.of(first, twice)["second-link"][0] == "error"
    itself = router(portal(1), link("a", listens(7001)), link("b", calls(7001)))
    assert findings.of(itself)["link-to-itself"][0] == "error"


def test_times_and_lists_of_a_link(findings: Findings) -> None:
    short = '<gateway-keepalive interval="1000" timeout="2000"/>'
    never = '<acl><inbound><ace match="reject"><transport comparison="eq" value="tcp"/></ace></inbound></acl>'
    found = findings.of(router(portal(1), link("a", listens(7001), short + never)))
    assert found["link-timeout"][0] == "warning"
    assert found["access-never"][0] == "error"


@pytest.mark.rows("R-239")
def test_links_heal_faster_than_documented_times(findings: Findings) -> None:
    timeouts = "source ume_store_activity_timeout 6000\nsource ume_store 127.0.0.1:14567\n"
    assert "below-healing" in findings.of(router(), client=timeouts)
    assert "below-healing" not in findings.of(router(portal(1), link("a", listens(7001))), client=timeouts)


def test_the_chapter_has_every_code_of_a_check_and_of_a_line() -> None:
    chapter = (ROOT / "spec" / "router_daemon.md").read_text(encoding="utf-8")
    source = (ROOT / "adapters/stablecast/router/checks.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'\(\s*"([a-z-]+)",\s*AdviceLevel', source))
    assert len(codes) > 15
    shown = first_cells(chapter, "Checks")
    assert shown == codes
    lines = {code for table in (DROPS, UNICAST_DROPS) for code, _ in table.values()}
    assert {"ready", "router"} | lines | PUBLISHED.keys() == {
        code for cell in first_cells(chapter, "The log") for code in cell.split(", ")
    }


def test_the_chapter_has_every_element_of_a_file() -> None:
    chapter = (ROOT / "spec" / "router_daemon.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([\w-]+)`", chapter))
    elements = (*PORTAL, *PORTAL_ATTRIBUTES, *ROUTES, *UNUSED, *PEER, *UNUSED_OF_PEERS)
    assert {path.rpartition("/")[2] for path in elements} <= known
    followed = {path: options for path, options in PORTAL_ATTRIBUTES.items() if path not in UNUSED}
    assert {name for options in followed.values() for name in options} <= known


def first_cells(text: str, heading: str) -> set[str]:
    table = text.partition(f"## {heading}\n")[2].partition("\n| ")[2].partition("\n\n")[0]
    return {line.split("|")[1].strip() for line in table.splitlines()[2:]}
