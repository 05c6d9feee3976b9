"""Store configurations in XML: the documents of each version, and the places of problems."""

from pathlib import Path

import pytest

from stablecast.config.daemon_outline import Outline
from stablecast.config.findings import MAX_BYTES, ConfigFileError
from stablecast.config.schema import VERSIONS
from stablecast.config.xml_file import load, parse

GUIDE = """<?xml version="1.0"?>
<ume-store version="1.2">
  <daemon>
    <log>stored.log</log>
    <pidfile>stored.pid</pidfile>
    <web-monitor>*:15304</web-monitor>
  </daemon>
  <stores>
    <store name="test-store" port="14567">
      <ume-attributes>
        <option type="store" name="disk-cache-directory" value="cache"/>
        <option type="store" name="disk-state-directory" value="state"/>
        <option type="store" name="context-name" value="remote-store"/>
      </ume-attributes>
      <topics>
        <topic pattern="test*" type="PCRE">
          <ume-attributes>
            <option type="store" name="repository-type" value="disk"/>
            <option type="store" name="repository-size-threshold" value="104857600"/>
            <option type="store" name="repository-size-limit" value="209715200"/>
            <option type="store" name="repository-disk-file-size-limit" value="1073741824"/>
            <option type="store" name="source-activity-timeout" value="120000"/>
            <option type="store" name="receiver-activity-timeout" value="120000"/>
            <option type="store" name="retransmission-request-forwarding" value="0"/>
          </ume-attributes>
        </topic>
      </topics>
    </store>
  </stores>
</ume-store>
"""
"""The guide's example file (P-848)."""

FRAGMENT = """<?xml version="1.0"?>
<stores>
<store name="test-store" port="14567">
<ume-attributes>
<option type="store" name="disk-cache-directory" value="cache"/>
<option type="lbm-context" name="transport_lbtrm_rate_interval" value="100">
</ume-attributes>
</store>
</stores>
"""
"""The guide's other example, as it is printed: an option that is not closed, and no daemon."""


def document(inside: str = "", version: str = "1.2", daemon: str = "<log>a</log>", after: str = "") -> bytes:
    return (
        f'<ume-store version="{version}">\n<daemon>{daemon}</daemon>\n<stores>{inside}</stores>{after}</ume-store>'
    ).encode()


TOPICS = "<topics><topic pattern='t'/></topics>"


def store(inside: str = "<ume-attributes><option name='a' value='b'/></ume-attributes>", own: str = "") -> str:
    return f'<store name="s" port="1"{own}>{inside}</store>'


def topic(inside: str = "", own: str = 'pattern="t"') -> str:
    return store(f"<topics><topic {own}>{inside}</topic></topics>")


def option(own: str, inside: str = "") -> str:
    return store(f"<ume-attributes><option {own}>{inside}</option></ume-attributes>")


def wrong(data: bytes) -> str:
    with pytest.raises(ConfigFileError) as told:
        parse(data, "f.xml")
    return str(told.value)


@pytest.mark.rows("P-801", "P-809", "P-811", "P-817", "P-848")
def test_the_example_of_the_guide_is_read_as_it_stands() -> None:
    outline = parse(GUIDE.encode(), "f.xml")
    (only,) = outline.stores
    assert [name for name, _ in outline.daemon] == ["log", "pidfile", "web-monitor"]
    assert (only.name, only.port, only.interface) == ("test-store", "14567", "")
    assert [(given.scope, given.name, given.value) for given in only.options][2] == (
        "store", "context-name", "remote-store",
    )  # fmt: skip
    assert (only.topics[0].pattern, only.topics[0].kind, len(only.topics[0].options)) == ("test*", "PCRE", 7)
    assert only.topics[0].options[3].place.line == 21
    assert outline.log_required


@pytest.mark.rows("P-845", "P-846")
def test_the_other_example_is_refused_because_it_is_not_well_formed() -> None:
    """Closed, it is still no configuration, for the outermost element is another one."""
    assert wrong(FRAGMENT.encode()).startswith("f.xml:7: <xml>: Opening and ending tag mismatch: option line 6")
    closed = FRAGMENT.replace('value="100">', 'value="100"/>')
    assert wrong(closed.encode()) == "f.xml:2: <stores>: the outermost element must be <ume-store>"


@pytest.mark.rows("P-847")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_document_type_is_read(version: str) -> None:
    assert len(parse(document(topic(), version), "f.xml").stores) == 1


@pytest.mark.rows("P-854", "P-855")
@pytest.mark.parametrize(
    "data",
    [
        document(),
        document(store(TOPICS)),
        document(store(TOPICS + "<ume-attributes><option name='a' value='b'/></ume-attributes>")),
        document(daemon="<pidfile>p</pidfile><log>a</log><log type='file'>b</log><uid>1</uid><gid>2</gid>"),
        document(daemon="<log xml:space='preserve'> a </log><web-monitor permission='read-only'>*:1</web-monitor>"),
        document(version="1.3", daemon="<log frequency='daily' size='5'>a</log><xml-config>x</xml-config>"),
        document(version="1.3", daemon="<daemon-monitor><remote-snapshot-request allow='0'/></daemon-monitor>"),
        document(version="1.3", daemon="<daemon-monitor><lbm-config>f</lbm-config></daemon-monitor>"),
        document(store("<restore-last value='3'/>" + TOPICS), "1.3"),
        document(topic("<restore-last behavior='none'/>"), "1.3"),
    ],
)  # fmt: skip
def test_documents_that_the_document_type_allows(data: bytes) -> None:
    """One small file for each rule."""
    assert isinstance(parse(data, "f.xml"), Outline)


@pytest.mark.rows("P-810", "P-818", "P-854")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (document(version="2.0"), "1: <ume-store>: version '2.0' is not known: there are 1.0, 1.1, 1.2, 1.3"),
        (document(after="<queues/>"), "3: <queues>: queues are not served here, only stores: take them out"),
        (document(store("")), "3: <store>: Element store content does not follow the DTD"),
        (document(store("<topics/>")), "3: <topics>: Element topics content does not follow the DTD"),
        (document(store("<ume-attributes/>")), "3: <ume-attributes>: Element ume-attributes content does not"),
        (document(f"<store name='s'>{TOPICS}</store>"), "Element store does not carry attribute port"),
        (document(f"<store port='1'>{TOPICS}</store>"), "Element store does not carry attribute name"),
        (document(topic(own="")), "3: <topic>: Element topic does not carry attribute pattern"),
        (document(topic(own="pattern='t' kind='x'")), "3: <topic>: No declaration for attribute kind of element topic"),
        (document(option("name='a'")), "3: <option>: Element option does not carry attribute value"),
        (document(option("type='x' name='a' value='b'")), '3: <option>: Value "x" for attribute type of option is not'),
        (document(option("name='a' value='b'", "c")), "3: <option>: Element option was declared EMPTY"),
        (document(daemon="<port>1</port>"), "2: <daemon>: Element daemon content does not follow the DTD"),
        (document(topic("<restore-last/>")), "<topic>: Element topic content does not follow the DTD"),
        (document(daemon="<xml-config>x</xml-config>"), "<daemon>: Element daemon content does not follow the DTD"),
        (document(f"<store name='s' port='1'>{TOPICS}"), "Opening and ending tag mismatch"),
        (b"", "<xml>: Document is empty"),
        (b"<ume-store/>", "version 'None' is not known"),
        (b"<ume-store version='1.2'/>", "<ume-store>: Element ume-store content does not follow the DTD"),
    ],
)  # fmt: skip
def test_problems_have_line_and_element(data: bytes, told: str) -> None:
    assert told in wrong(data)


@pytest.mark.parametrize(
    ("data", "meant"),
    [
        (document(daemon="<pid-file>p</pid-file>"), "pidfile"),
        (document(topic(own="pattern='t' typ='PCRE'")), "type"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one_of_the_document_type(data: bytes, meant: str) -> None:
    assert f": did you mean '{meant}'?" in wrong(data)


def test_all_problems_are_reported_together() -> None:
    lines = wrong(document(topic(own="") + "\n" + store(""))).splitlines()
    assert [line.partition(" Element")[0] for line in lines] == ["f.xml:3: <topic>:", "f.xml:4: <store>:"]


def test_blanks_around_a_text_are_removed_unless_they_are_kept() -> None:
    outline = parse(document(daemon="<log>\n a\n</log><pidfile xml:space='preserve'> b </pidfile>"), "f.xml")
    assert [text.value for _, text in outline.daemon] == ["a", " b "]


def including(href: str) -> bytes:
    name = 'xmlns:xi="http://www.w3.org/2001/XInclude"'
    return f'<ume-store version="1.2" {name}><xi:include href="{href}"/></ume-store>'.encode()


def test_nothing_outside_is_read(tmp_path: Path) -> None:
    """No entity, and nothing from the network."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    entity = f'<!DOCTYPE ume-store [<!ENTITY e SYSTEM "file://{secret}">]>'.encode()
    outline = parse(entity + document(daemon="<log>&e;</log>"), "f.xml")
    assert "secret" not in outline.daemon[0][1].value
    assert "'http://192.0.2.1/x' is not a local file: only those are included" in wrong(including("http://192.0.2.1/x"))


def test_a_local_file_may_be_included(tmp_path: Path) -> None:
    (tmp_path / "daemon.xml").write_text("<daemon><log>included.log</log></daemon>")
    path = tmp_path / "f.xml"
    path.write_bytes(including("daemon.xml"))
    assert load(path).daemon[0][1].value == "included.log"
    (tmp_path / "daemon.xml").unlink()
    with pytest.raises(ConfigFileError, match="xi:include"):
        load(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.xml"
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ConfigFileError, match="this is no configuration"):
        load(path)
