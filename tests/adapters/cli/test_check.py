"""`stablecast check` reports everything that is wrong in everything that it is given, each finding with its place."""

import json
from pathlib import Path

import pytest
import trustme

from stablecast.cli import check
from stablecast.config.client_files import APPLICATION
from stablecast.resolver.lbmrd import config as relays
from stablecast.runtime.policy import POLICY
from tests.adapters.runtime.test_tls import certified
from tests.support.configurations import document, options

RELAY = """<lbmrd version="1.0"><daemon><ttl>{ttl}</ttl><interface>{interface}</interface></daemon>
<domains><domain name="none"><network>{network}</network></domain>{domain}</domains>
<transformations><transform source="none" destination="none"><rule>
<match address="0.0.0.0" port="0"/><replace address="0.0.0.0" port="0"/></rule></transform></transformations></lbmrd>
"""
"""The documented form of a file that translates nothing."""

STORE = """<?xml version="1.0"?>
<ume-store version="1.3"><daemon><log/>{daemon}</daemon><stores>
<store name="a" port="14567" interface="{interface}"><topics><topic pattern="." type="PCRE"/></topics></store>
</stores></ume-store>
"""


def findings(
    capsys: pytest.CaptureFixture[str], *files: Path, application: str = "", context: str = ""
) -> list[tuple[str, str, str, str]]:
    """Return level, code, place and sentence of each finding."""
    status = check.run(files, "safe", True, application, context)
    found = json.loads(capsys.readouterr().out)["advice"]
    assert status == int(any(one["level"] == "error" for one in found))
    return [(one["level"], one["code"], one["where"], one["text"]) for one in found]


def relay(ttl: int = 60_000, interface: str = "127.0.0.1", network: str = "0.0.0.0/32", domain: str = "") -> str:
    return RELAY.format(ttl=ttl, interface=interface, network=network, domain=domain)


@pytest.mark.rows("P-851")
def test_one_wrong_file_hides_nothing_of_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Malformed lines, wrong names and wrong values are reported together, and a missing file beside them."""
    wrong, other = tmp_path / "wrong.cfg", tmp_path / "other.cfg"
    wrong.write_text("context ume_session_id 7\ncontext\nsource ume_flight_sise 5\nsource late_join 7\n")
    other.write_text("context use_tls 1\n")
    found = findings(capsys, wrong, tmp_path / "none.cfg", other)
    assert [(level, code, where) for level, code, where, _ in found] == [
        ("error", "invalid", f"{wrong}:2: <context>"),
        ("error", "invalid", f"{wrong}:3: <ume_flight_sise>"),
        ("error", "invalid", f"{wrong}:4: <late_join>"),
        ("error", "unreadable", str(tmp_path / "none.cfg")),
        ("error", "invalid", f"{other}:1: <use_tls>"),
    ]
    assert "none.cfg" not in found[3][3], "the place has it"


@pytest.mark.rows("T-221", "T-222")
def test_files_of_relays_and_services_are_checked_beside_stores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interface that this host lacks is advice, because the file may belong to another host."""
    store, service, plain = tmp_path / "store.xml", tmp_path / "srs.toml", tmp_path / "lbmrd.xml"
    store.write_text(STORE.format(daemon="", interface="10.99.1.0/24"))
    service.write_text('[srs]\ninterface = "10.99.1.1"\n')
    plain.write_text(relay(ttl=60, interface="10.99.2.0/24"))
    found = findings(capsys, store, plain, service)
    assert {level for level, *_ in found} == {"advice"}
    told = [f"{where}: {text}" for _, code, where, text in found if code == "notice"]
    assert [text.partition("': it has")[0] for text in told] == [
        f"{store}:3: <store>: no interface of this host matches '10.99.1.0/24",
        f"{plain}:1: <interface>: no interface of this host matches '10.99.2.0/24",
        f"{plain}:3: <transform>: no address is translated within the domain 'none'",
        f"{plain}: ttl: the relay looks for silent clients only every 60000 ms: set activity below ttl 60".replace(
            ": ttl", ":ttl", 1
        ),
        f"{service}: no interface of this host matches '10.99.1.1",
    ]


@pytest.mark.rows("T-222")
def test_overlapping_domains_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lbmrd.xml"
    other = '<domain name="b"><network>10.1.0.0/16</network></domain>'
    path.write_text(relay(network="10.0.0.0/8", domain=other))
    text = "network 10.0.0.0/8 overlaps 10.1.0.0/16 of domain 'b': an address lies in one domain"
    assert findings(capsys, path) == [("error", "invalid", f"{path}:2: <domain>", text)]


@pytest.mark.rows("T-222")
def test_the_documented_file_without_translation_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "lbmrd.xml"
    path.write_text(relay())
    assert relays.load(path).translation.transforms == ()


def applications(*names: str) -> str:
    """Return an XML file of applications; the source of each has stores, and its context no request port."""
    context = options("context", request_tcp_bind_request_port=0) + options("source", ume_store="10.0.0.1:14567")
    each = f'<contexts><context name="x">{context}</context><context name="y"/></contexts>'
    return document("", "".join(f'<application name="{name}">{each}</application>' for name in names))


@pytest.mark.rows("T-003", "P-038")
def test_each_application_and_context_is_checked_under_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "um.xml"
    path.write_text(applications("buyer", "seller"))

    def refused(application: str = "", context: str = "") -> list[str]:
        found = findings(capsys, path, application=application, context=context)
        return [where for _, code, where, _ in found if code == "no-request-port"]

    both = [f'{path}: application "{name}": context "x"' for name in ("buyer", "seller")]
    assert refused() == both
    assert refused("seller") == [f'{path}: context "x"']
    assert refused("seller", "y") == []
    monkeypatch.setenv(APPLICATION, "seller")
    assert refused() == [f'{path}: context "x"']


@pytest.mark.rows("P-849")
def test_a_store_reads_the_documented_application_and_names_the_true_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`umestored` where no application is named; what is wrong in a file of options has that file and its line."""
    applied, flat, store = tmp_path / "um.xml", tmp_path / "lbm.cfg", tmp_path / "store.xml"
    wrong = options("source", transport_lbtru_transmission_window_size=50_000)
    template = f'<templates><template name="t">{wrong}</template></templates>'
    applied.write_text(
        document("", '<application name="other"/><application name="umestored" template="t"/>').replace(
            "<templates></templates>", template
        )
    )
    flat.write_text("source transport lbtru\ncontext fd_management_type 1\nsource late_join 7\n")
    daemon = f"<xml-config>{applied}</xml-config><lbm-config>{flat}</lbm-config>"
    store.write_text(STORE.format(daemon=daemon, interface="127.0.0.1"))
    assert [where for level, _, where, _ in findings(capsys, store) if level == "error"] == [
        f"{applied}:3: <transport_lbtru_transmission_window_size>",
        f"{flat}:3: <late_join>",
    ]
    applied.write_text(document("", '<application name="umestored"/>'))
    flat.write_text("context fd_management_type 1\n")
    notices = [f"{where}: {text}" for _, code, where, text in findings(capsys, store) if code == "notice"]
    assert notices == [
        f"{store}:xml-config: application-name is missing: the documented default is umestored",
        f"{flat}:1: <fd_management_type>: fd_management_type has no effect: the event loop chooses how it waits",
    ]


@pytest.mark.rows("P-850")
@pytest.mark.parametrize(
    "option",
    [
        "resolver_multicast_address",
        "resolver_multicast_incoming_address",
        "resolver_multicast_outgoing_address",
        "transport_lbtrm_multicast_address_low",
        "transport_lbtrm_multicast_address",
    ],
)
def test_a_unicast_address_is_no_group(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "um.cfg"
    scope = "source" if option.endswith("lbtrm_multicast_address") else "context"
    path.write_text(f"{scope} {option} 10.1.2.3\n")
    text = f"option {option}: 10.1.2.3 is not a multicast group: 224.0.0.0 to 239.255.255.255"
    assert findings(capsys, path) == [("error", "invalid", f"{path}:1: <{option}>", text)]


@pytest.mark.parametrize(
    ("roles", "level", "code", "told"),
    [
        ("['source', 'store']\ntopics = ['orders']", "advice", "policy", "source of orders, store"),
        ("['operator']", "error", "invalid", "operator"),
    ],
)
def test_a_policy_is_judged_by_the_certificate_beside_it(
    roles: str, level: str, code: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = certified(tmp_path / "tls", trustme.CA(), common_name="shop") / POLICY
    place.write_text(f"[[allow]]\nnames = ['sh*']\nroles = {roles}\n")
    ((*found, text),) = findings(capsys, place)
    assert found == [level, code, str(place)]
    assert told in text
    assert POLICY not in text, "the place has it"


def test_a_policy_that_gives_the_own_certificate_nothing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = certified(tmp_path / "tls", trustme.CA(), common_name="shop") / POLICY
    place.write_text("[[allow]]\nnames = ['desk']\nroles = ['store']\n")
    assert [code for _, code, _, _ in findings(capsys, place)] == ["policy-gives-nothing"]
