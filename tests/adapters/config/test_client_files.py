"""The configuration of a client from its files: layers, sections of topics, rules, and problems with their places."""

from pathlib import Path

import pytest

from stablecast.config.client_configuration import ClientConfiguration
from stablecast.config.client_files import APPLICATION, VARIABLE, load
from stablecast.config.findings import ConfigFileError
from stablecast.config.option_kinds import OptionError
from tests.support.configurations import application, document, options, template


def read(directory: Path, **files: str) -> ClientConfiguration:
    """Load files whose names have an underscore for the full stop."""
    paths = []
    for name, text in files.items():
        paths.append(directory / name.replace("_", "."))
        paths[-1].write_text(text, encoding="utf-8")
    return load(paths, environment=False)


def sources(*topics: str, **attributes: str) -> str:
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<sources{given}>{''.join(topics)}</sources>"


def topic(inside: str = "", **attributes: str) -> str:
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<topic{given}>{inside}</topic>"


def flight(value: int) -> str:
    """Return options with one value by which layers are told apart."""
    return options("source", ume_flight_size=value)


def size(found: ClientConfiguration, name: str = "orders") -> str:
    """Return the value of a topic's source."""
    return str(found.of_endpoint("source", name)["ume_flight_size"])


@pytest.mark.rows("T-003")
def test_templates_and_sections_apply_in_the_documented_order(tmp_path: Path) -> None:
    """Each layer of an XML file overrides the one before it."""
    names = ("first", "second", "contexts", "context", "sources", "topic")
    templates = "".join(template(name, flight(number)) for number, name in enumerate(names, 1))
    layers = {
        "first": ("", "", "", ""),
        "first,second": ("", "", "", ""),
        "first,second ": ("contexts", "", "", ""),
    }
    seen = []
    for using, (contexts, _, _, _) in layers.items():
        whole = application(name="A", using=using.strip())
        whole = whole.replace("<contexts>", f'<contexts template="{contexts}">') if contexts else whole
        seen.append(size(read(tmp_path, a_xml=document(templates, whole))))
    assert seen == ["1", "2", "3"]
    of_topic = topic(topicname="orders", template="topic")
    for parts, expected in (
        ((), "4"),
        ((flight(40),), "40"),
        ((flight(40), sources(template="sources")), "5"),
        ((flight(40), sources(of_topic, template="sources")), "6"),
        ((flight(40), sources(topic(flight(7), topicname="orders", template="topic"), template="sources")), "7"),
    ):
        found = read(tmp_path, a_xml=document(templates, application(*parts, using="first,second", context="context")))
        assert size(found) == expected


@pytest.mark.rows("T-003")
def test_the_name_of_a_topic_wins_and_then_the_first_pattern(tmp_path: Path) -> None:
    """Patterns match anywhere, in the order of the file."""
    parts = sources(
        topic(flight(1), pattern="^or.*s$"), topic(flight(2), pattern="r"), topic(flight(3), topicname="orders")
    )
    found = read(tmp_path, a_xml=document("", application(flight(9), parts)))
    assert [size(found, name) for name in ("orders", "orbits", "trades", "quotes")] == ["3", "1", "2", "9"]


@pytest.mark.rows("T-003")
def test_option_files_override_xml_and_later_files_override_earlier_ones(tmp_path: Path) -> None:
    """However they are named; a value of an option file is not overridden by a section."""
    xml = document("", application(flight(1), sources(topic(flight(2), topicname="orders"))))
    assert size(read(tmp_path, a_cfg="source ume_flight_size 3\n", b_xml=xml)) == "3"
    assert size(read(tmp_path, a_cfg="source ume_flight_size 3\n", b_toml="[source]\nume_flight_size = 4\n")) == "4"
    assert size(read(tmp_path, b_xml=xml)) == "2"


def test_toml_has_scopes_lists_and_topics(tmp_path: Path) -> None:
    text = """
    [source]
    ume_store = ["127.0.0.1:14567", "127.0.0.1:14568"]
    [receiver]
    use_late_join = true
    [[topic]]
    pattern = "^or"
    source = { ume_flight_size = 5 }
    receiver = { use_late_join = false }
    """
    found = read(tmp_path, a_toml=text)
    assert found.of_endpoint("source", "orders") == {
        "ume_store": "127.0.0.1:14567,127.0.0.1:14568",
        "ume_flight_size": "5",
    }
    assert found.of_endpoint("receiver", "orders") == {"use_late_join": "0"}
    assert found.of_endpoint("receiver", "quotes") == {"use_late_join": "1"}


@pytest.mark.rows("P-850")
def test_lists_append_in_and_across_files(tmp_path: Path) -> None:
    """The zero entry clears the list, wherever it stands."""
    found = read(
        tmp_path,
        a_cfg="source ume_store 10.0.0.1:1\nsource ume_store 10.0.0.2:2\n",
        b_cfg="source ume_store 10.0.0.3:3",
    )
    assert found.of_endpoint("source")["ume_store"] == "10.0.0.1:1,10.0.0.2:2,10.0.0.3:3"


def test_options_of_a_context_hold_for_its_endpoints(tmp_path: Path) -> None:
    text = "context ume_session_id 7\ncontext transport_lbtrm_data_rate_limit 1000000\nreceiver ume_session_id 8\n"
    found = read(tmp_path, a_cfg=text)
    limit = {"transport_lbtrm_data_rate_limit": "1000000"}
    assert found.of_endpoint("source") == {"ume_session_id": "7", **limit}
    assert found.of_endpoint("receiver") == {"ume_session_id": "8", **limit}


def test_the_environment_names_files_below_those_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, xml = tmp_path / "one.cfg", tmp_path / "two.cfg", tmp_path / "um.xml"
    one.write_text("source ume_flight_size 1\nsource ume_registration_interval 10\n")
    two.write_text("source ume_flight_size 2\n")
    xml.write_text(document("", application(name="A") + application(options("source", late_join=1), name="B")))
    monkeypatch.setenv(VARIABLE, f"{one}:{xml}")
    monkeypatch.setenv(APPLICATION, "B")
    assert load([two]).of_endpoint("source") == {
        "late_join": "1",
        "ume_registration_interval": "10",
        "ume_flight_size": "2",
    }
    assert load([two], environment=False).of_endpoint("source") == {"ume_flight_size": "2"}


def test_rules_deny_topics_and_values(tmp_path: Path) -> None:
    """The last matching rule decides, and the last word of the order where no rule matches."""
    limited = '<options type="source"><option name="late_join" order="deny,allow"><deny>0</deny></option></options>'
    rules = sources(
        topic(pattern="^trade", rule="deny"), topic(pattern="^trade[.]NASD", rule="allow"), order="deny,allow"
    )
    only = '<receivers order="allow,deny"><topic topicname="info" rule="allow"/></receivers>'
    found = read(tmp_path, a_xml=document("", application(limited, rules, only)))
    for name in ("trade.NASD.x", "quote"):
        found.check("source", name, {"late_join": "1"})
    found.check("receiver", "info", {})
    with pytest.raises(OptionError, match=r"the topic 'trade\.a' is not permitted for a source: .*a\.xml:4: <sources>"):
        found.check("source", "trade.a", {})
    with pytest.raises(OptionError, match="the topic 'quote' is not permitted for a receiver"):
        found.check("receiver", "quote", {})
    with pytest.raises(OptionError, match=r"option late_join may not be '0': .*a\.xml:4: <option> denies it"):
        found.check("source", "quote", {"late_join": 0})


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a_cfg", "source ume_flight_siz 5\n", "a.cfg:1: <ume_flight_siz>: there is no source option"),
        (
            "a_cfg",
            "\nreceiver late_join 1\n",
            "2: <late_join>: late_join is an option of the scope source",
        ),
        ("a_cfg", "source ume_store 10.0.0.1\n", "<ume_store>: '10.0.0.1' is not"),
        (
            "a_cfg",
            "context resolver_service 7->a:1\ncontext default_interface\n",
            "a.cfg:2: <default_interface>: option default_interface wants a text, not ''",
        ),
        ("a_toml", "[source]\nume_flight_size = 1.5\n", "source.ume_flight_size: write a text, a number"),
        ("a_toml", "[sorce]\nume_flight_size = 1\n", "there is no 'sorce' here"),
        ("a_toml", "[[topic]]\nsource = {}\n", "topic.0: this section needs name or pattern"),
        ("a_xml", document("", application(topic())), "<context>"),
        ("a_xml", document("", application(using="none")), "<application>: there is no template 'none'"),
        ("a_xml", document("", application(name="A") + application(name="B")), "the file has several: name the"),
        ("a_xml", document(template("t", options("store", a=1))), "there is no scope 'store'"),
        ("a_xml", document("", application(sources(topic(pattern="(")))), "<topic>: '(' is not an expression"),
        ("a_xml", document().replace("templates", "templtes"), "did you mean 'templates'?"),
        ("a_xml", document("", application(options("source", ume_flight_size="many"))), "wants a whole number"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(name: str, text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError) as raised:
        read(tmp_path, **{name: text})
    assert told in str(raised.value)


@pytest.mark.rows("P-345", "P-201", "P-411")
def test_notices_have_file_line_and_reason(tmp_path: Path) -> None:
    """Contradictions, old and hyphenated names; not the domain of a store, which has an effect."""
    text = (
        "context operational_mode embedded\ncontext resolver_unicast_address 10.0.0.1\n"
        "receiver ume_explicit_ack_only 1\nreceiver ume_use_ack_batching 1\n"
        "source ume_store 3:10.0.0.1:14567\nsource ume_late_join 0\nsource ume_receiver-paced-persistence 0\n"
    )
    found = read(tmp_path, a_cfg=text)
    flags = "ume_explicit_ack_only and ume_use_ack_batching"
    assert [f"{notice.place}: {notice.text}" for notice in found.notices] == [
        "1: <operational_mode>: operational_mode has no effect: a context runs on the event loop of the application",
        "2: <resolver_unicast_address>: option resolver_unicast_address is deprecated: write resolver_unicast_daemon",
        "6: <ume_late_join>: option ume_late_join is an old name: write late_join",
        "7: <ume_receiver_paced_persistence>: write ume_receiver_paced_persistence, with underscores",
        "options: option late_join 0 contradicts the stores: a source with stores always serves late receivers",
        f"options: options {flags} contradict each other: ume_use_ack_batching, the last one, counts",
    ]
    assert {notice.place.path for notice in found.notices} == {str(tmp_path / "a.cfg")}
