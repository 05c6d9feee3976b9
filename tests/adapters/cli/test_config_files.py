"""`send`, `receive`, `up`, `check` and `prove` with the configuration files of a client."""

import json
import shutil
from pathlib import Path

import pytest

from stablecast.cli import known_stores
from tests.support.configurations import application, document, options, template
from tests.support.network import unused_port
from tests.support.program import lbmrd, outcome, running, store


def xml(directory: Path, resolver: str, address: str) -> Path:
    """Write the file of an application with a template and a section of a topic."""
    stored = options("source", ume_store=address, ume_flight_size=3)
    text = document(
        template("base", options("context", resolver_unicast_daemon=resolver, fd_management_type="epoll")),
        application(f'<sources><topic topicname="orders">{stored}</topic></sources>', name="app", using="base"),
    )
    path = directory / "um.xml"
    path.write_text(text, encoding="utf-8")
    return path


NOTICE = "fd_management_type has no effect: the event loop chooses how it waits"


@pytest.mark.rows("T-003")
def test_messages_flow_with_files_alone(tmp_path: Path) -> None:
    """XML for the one, an option file over the environment for the other."""
    with lbmrd() as (_, resolver), store(tmp_path / "store") as (_, address):
        whole = xml(tmp_path, resolver, address)
        flat = tmp_path / "um.cfg"
        flat.write_text("context ume_session_id 7\n", encoding="utf-8")
        with (
            running(
                "receive", "orders", "--config", flat, "--count", "2", environment={"STABLECAST_CONFIG": str(whole)}
            ) as receiver,
            running("send", "orders", "-c", whole, "-c", flat, "--application", "app", "--json") as sender,
        ):
            out, err = sender.process.communicate("one\ntwo\n")
            assert [receiver.line(), receiver.line()] == ["one", "two"]
            assert json.loads(out)["stable"] == 2
            assert NOTICE in err
            status, _, told = receiver.end()
            assert (status, NOTICE in told) == (0, True)


def test_a_file_that_names_no_way_to_sources_is_told(tmp_path: Path) -> None:
    flat = tmp_path / "um.cfg"
    flat.write_text("receiver use_otr 1\n", encoding="utf-8")
    status, _, err = outcome("receive", "orders", "--config", flat)
    assert (status, "the receiver has no way to find sources" in err) == (2, True)


def test_a_wrong_file_is_one_sentence_for_each_problem(tmp_path: Path) -> None:
    flat = tmp_path / "um.cfg"
    flat.write_text("source ume_flight_siz 5\nsource late_join 7\n", encoding="utf-8")
    status, out, err = outcome("send", "orders", "--config", flat)
    assert (status, out) == (1, "")
    unknown = "there is no source option 'ume_flight_siz': did you mean 'ume_flight_size'?"
    assert err.splitlines() == [
        f"stablecast: {flat}:1: <ume_flight_siz>: {unknown}",
        f"{flat}:2: <late_join>: option late_join must be 0 or 1, not '7'",
    ]


def test_check_and_prove_read_xml_and_toml(tmp_path: Path) -> None:
    address = "10.0.0.1:14567:1"
    whole = xml(tmp_path, "127.0.0.1:15380", address)
    status, out, _ = outcome("check", whole)
    assert status == 0
    assert f'{whole}: topic "orders"' in out
    assert f"{whole}:3: <fd_management_type>: {NOTICE}" in out
    toml = tmp_path / "um.toml"
    toml.write_text(f'[source]\nume_store = "{address}"\nume_flight_size = 1\n', encoding="utf-8")
    bounds = ("--messages", "1", "--restarts", "0", "--faults", "none", "--json")
    for arguments in ((whole, "--topic", "orders"), (toml,)):
        status, out, err = outcome("prove", *arguments, *bounds)
        assert (status, err) == (0, "")
        assert json.loads(out)["verdict"] == "none"
    assert outcome("prove", whole, *bounds)[0] == 2  # Without its topic there are no stores.


@pytest.mark.parametrize("kind", ["address", "name"])
def test_up_runs_the_daemons_that_a_file_names(kind: str, tmp_path: Path) -> None:
    relay = f"127.0.0.1:{unused_port()}"
    places = [f"127.0.0.1:{unused_port()}" for _ in range(2)]
    stores = (
        "".join(f"source ume_store {place}\n" for place in places)
        if kind == "address"
        else "source ume_store_name one\nsource ume_store_name two\n"
    )
    file = tmp_path / "um.cfg"
    file.write_text(
        f"context resolver_unicast_daemon {relay}\ncontext default_interface 127.0.0.1\n{stores}"
        "source ume_proxy_source 1\ncontext ume_session_id 9\n"
        "source ume_store 192.0.2.7:14567\nsource ume_store_group 0:3\n",
        encoding="utf-8",
    )
    with running("up", "--config", file, "--directory", tmp_path / "data", "--json") as cluster:
        ready = cluster.json_line()
        assert ready["daemons"][0] == f"lbmrd {relay}"
        assert len(ready["stores"]) == 2
        with (
            running("receive", "orders", "--config", file, "--count", "1") as receiver,
            running("send", "orders", "--config", file) as sender,
        ):
            sender.process.communicate("hello\n")
            assert receiver.line() == "hello"
        cluster.interrupt()
        status, _, err = cluster.end()
        assert status == 0
        assert "192.0.2.7:14567 is on another host: start its daemon there" in err
    assert "no registration is granted" not in err, "they are new"
    lost = next(path for path in sorted((tmp_path / "data").glob("store-*")) if path.is_dir())
    shutil.rmtree(lost)
    with running("up", "--config", file, "--directory", tmp_path / "data", "--json") as cluster:
        assert len(cluster.json_line()["stores"]) == 2
        cluster.interrupt()
        status, _, err = cluster.end()
    assert status == 0
    assert err.count("no registration is granted") == 1
    assert f"{lost} holds no journal" in err


def test_up_refuses_a_damaged_list_of_the_stores_that_it_had(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "um.cfg"
    data.mkdir()
    file.write_text(f"source ume_store 127.0.0.1:{unused_port()}\n", encoding="utf-8")
    for text in ("", "{}", "[7]"):
        (data / known_stores.FILE).write_text(text)
        status, out, err = outcome("up", "--config", file, "--directory", data)
        assert (status, out) == (1, "")
        remedy = "remove it if every store of this cluster is new or has its files"
        assert err == f"stablecast: {data / known_stores.FILE} is damaged: {remedy}\n"
    assert [path.name for path in data.iterdir()] == [known_stores.FILE], "nothing was started"


def test_up_runs_a_store_daemon_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "store.toml"
    file.write_text(
        '[[store]]\nname = "a"\nport = 0\ninterface = "127.0.0.1"\n'
        f'options = {{ disk-cache-directory = "{tmp_path}", disk-state-directory = "{tmp_path}" }}\n'
        '[[store.topic]]\npattern = "."\ntype = "PCRE"\n',
        encoding="utf-8",
    )
    with running("up", "--config", file, "--directory", tmp_path / "data", "--json") as cluster:
        assert len(cluster.json_line()["stores"]) == 1
        cluster.interrupt()
        assert cluster.end()[0] == 0
