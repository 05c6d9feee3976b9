"""The composition of containers, played by network namespaces: its addresses, commands and configuration."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.namespaces import reason_to_skip
from tests.support.program import Program, running
from tests.support.tree import ROOT

FOLDER = ROOT / "packaging/container"
COMPOSITION: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSITION["services"]
STORES = ("store-1", "store-2", "store-3")
MESSAGES = [f"order {number}" for number in range(10)]


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


@contextmanager
def hosts(addresses: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield a namespace for each host. All are ports of a bridge that has a namespace of its own."""
    mark = f"sc{os.getpid()}"
    names = {host: f"{mark}h{index}" for index, host in enumerate(addresses)}
    with ExitStack() as stack:
        for namespace in (mark, *names.values()):
            _ip(f"netns add {namespace}")
            stack.callback(_ip, f"netns del {namespace}")
        subprocess.run(["ip", "-n", mark, "link", "add", "wire", "type", "bridge"], check=True)
        subprocess.run(["ip", "-n", mark, "link", "set", "wire", "up"], check=True)
        for index, (host, namespace) in enumerate(names.items()):
            _ip(f"link add e0 netns {namespace} type veth peer name p{index} netns {mark}")
            for inside, line in (
                (mark, f"link set p{index} master wire up"),
                (namespace, "link set lo up"),
                (namespace, f"addr add {addresses[host]}/24 dev e0"),
                (namespace, "link set e0 up"),
            ):
                subprocess.run(["ip", "-n", inside, *line.split()], check=True)
        yield names


def composed() -> dict[str, str]:
    """Return the address of each service: a fixed one, or one that the engine would choose."""
    networks = {name: SERVICES[name]["networks"] for name in SERVICES}
    return {
        name: network["messages"]["ipv4_address"] if isinstance(network, dict) else f"10.77.0.{100 + index}"
        for index, (name, network) in enumerate(networks.items())
    }


def service(name: str, namespace: str, directory: Path, *more: str) -> AbstractContextManager[Program]:
    """Run the command of a service on its host, in its own volume."""
    directory.mkdir()
    arguments = [part.replace("/etc/stablecast", str(FOLDER)) for part in SERVICES[name]["command"]]
    prefix = ("ip", "netns", "exec", namespace, sys.executable, "-m", "stablecast.cli.main")
    return running(*arguments, *more, program=prefix, directory=directory)


@pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "namespaces are permitted")
def test_the_composition_works(tmp_path: Path) -> None:
    with hosts(composed()) as names, ExitStack() as stack:

        def start(name: str, *more: str) -> Program:
            return stack.enter_context(service(name, names[name], tmp_path / name, *more))

        assert start("relay").line() == "lbmrd is ready on 10.77.0.2:15380"
        stores = [start(store, "--new") for store in STORES]
        for index, store in enumerate(stores, 1):
            assert store.line() == f'store "store" ready to accept registrations at 10.77.0.1{index}:14567'
            assert store.line() == "monitor at http://0.0.0.0:15304"
        receiver = start("receiver", "--count", str(len(MESSAGES)))
        sender = start("sender")
        assert sender.process.stdin is not None
        sender.write("\n".join(MESSAGES) + "\n")
        sender.process.stdin.close()
        assert [receiver.line() for _ in MESSAGES] == MESSAGES
        assert receiver.process.wait() == 0
        probe = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:15304/readyz').status)"
        command = ["ip", "netns", "exec", names["store-1"], sys.executable, "-c", probe]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "200\n"


@pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "namespaces are permitted")
def test_a_router_joins_a_second_relay(tmp_path: Path) -> None:
    """A receiver of the other domain gets all, from the stores if it came too late for the source."""
    with hosts(composed()) as names, ExitStack() as stack:

        def start(name: str, *more: str) -> Program:
            return stack.enter_context(service(name, names[name], tmp_path / name, *more))

        for relay in ("relay", "distant-relay"):
            assert start(relay).line().startswith("lbmrd is ready")
        stores = [start(store, "--new") for store in STORES]
        assert all("ready to accept" in store.line() for store in stores)
        assert "first (domain 1) at 10.77.0.4:14391" in start("router").line()
        receiver = start("distant-receiver", "--count", str(len(MESSAGES)))
        sender = start("sender")
        assert sender.process.stdin is not None
        sender.write("\n".join(MESSAGES) + "\n")
        assert [receiver.line() for _ in MESSAGES] == MESSAGES
        sender.process.stdin.close()
        assert receiver.process.wait() == 0


def test_every_container_is_locked_down() -> None:
    for name, one in SERVICES.items():
        assert (one["image"], one["read_only"], one["cap_drop"]) == ("stablecast", True, ["ALL"]), name
    for name in STORES:
        assert f"{name}:/var/lib/stablecast" in SERVICES[name]["volumes"]
