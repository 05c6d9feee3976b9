"""The manifest of Kubernetes: judged by the schemas of its API, and played by network namespaces."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from stablecast.router import checks, router_files
from tests.packaging.test_container import MESSAGES, hosts
from tests.support.namespaces import reason_to_skip
from tests.support.program import Program, running
from tests.support.tree import ROOT

OBJECTS: list[dict[str, Any]] = [
    each
    for manifest in sorted((ROOT / "packaging/kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(manifest.read_text())
]
OLDEST = "1.29"
"""The first release of Kubernetes in which claims of one pod each are stable, which the manifest asks for."""
NODES = {
    "node-1": "10.77.0.11",
    "node-2": "10.77.0.12",
    "node-3": "10.77.0.13",
    "master": "10.77.0.2",
    "client": "10.77.0.50",
}
"""Hosts of the cluster. A store uses the address of its node."""
SERVICE = "stablecast-resolution:27000"


def one(kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


STORES = one("StatefulSet", "stablecast-store")["spec"]
POD = STORES["template"]["spec"]
[STORE] = POD["containers"]


@pytest.mark.parametrize("release", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize(
    "index", range(len(OBJECTS)), ids=[f"{each['kind']} {each['metadata']['name']}" for each in OBJECTS]
)
def test_the_api_accepts_every_object(index: int, release: str) -> None:
    kubernetes_validate.validate(OBJECTS[index], release, strict=True)


def test_the_schemas_find_a_mistake() -> None:
    wrong = one("PodDisruptionBudget", "stablecast-store") | {"spec": {"maxUnavailabel": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="maxUnavailabel"):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


def test_the_parts_name_each_other() -> None:
    labels = STORES["template"]["metadata"]["labels"]
    assert STORES["selector"]["matchLabels"] == labels
    assert STORES["serviceName"] == one("Service", "stablecast-store")["metadata"]["name"]
    for kind in ("Service", "PodDisruptionBudget"):
        selector = one(kind, "stablecast-store")["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels
    claims = {claim["metadata"]["name"] for claim in STORES["volumeClaimTemplates"]}
    assert {mount["name"] for mount in STORE["volumeMounts"]} == claims | {volume["name"] for volume in POD["volumes"]}
    ports = {port["name"] for port in STORE["ports"]}
    assert {STORE[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")} <= ports


def test_one_lost_node_leaves_a_quorum() -> None:
    [apart] = POD["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert one("PodDisruptionBudget", "stablecast-store")["spec"]["maxUnavailable"] < STORES["replicas"] / 2


def test_every_container_is_locked_down() -> None:
    for kind, name in (
        ("StatefulSet", "stablecast-store"),
        ("Deployment", "stablecast-resolution"),
        ("Deployment", "stablecast-router"),
    ):
        pod = one(kind, name)["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert (rights["readOnlyRootFilesystem"], rights["capabilities"]) == (True, {"drop": ["ALL"]})


def test_the_configuration_of_the_router_is_valid(tmp_path: Path) -> None:
    """Its interfaces are those of another host."""
    path = tmp_path / "router.toml"
    path.write_text(one("ConfigMap", "stablecast-router")["data"]["router.toml"])
    config = router_files.load(path, here=False)
    [container] = one("Deployment", "stablecast-router")["spec"]["template"]["spec"]["containers"]
    assert config.daemon.monitor is not None
    assert {port["containerPort"] for port in container["ports"]} == {config.daemon.monitor.port}
    assert checks.deaf(config) == []


@pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "namespaces are permitted")
def test_the_manifest_works(tmp_path: Path) -> None:
    """Each node has its store, and clients find all by the service. The name of the service is its address here."""
    address = f"{NODES['master']}:27000"
    configuration = tmp_path / "store.toml"
    configuration.write_text(one("ConfigMap", "stablecast-store")["data"]["store.toml"].replace(SERVICE, address))
    with hosts(NODES) as names, ExitStack() as stack:

        def start(node: str, *arguments: str) -> Program:
            prefix = ("ip", "netns", "exec", names[node], sys.executable, "-m", "stablecast.cli.main")
            (tmp_path / node).mkdir(exist_ok=True)
            return stack.enter_context(running(*arguments, program=prefix, directory=tmp_path / node))

        [service] = one("Deployment", "stablecast-resolution")["spec"]["template"]["spec"]["containers"]
        assert start("master", *service["args"]).line() == "srs is ready on 0.0.0.0:27000"
        arguments = [part.replace("/etc/stablecast/store.toml", str(configuration)) for part in STORE["args"]]
        stores = [start(node, *arguments, "--new") for node in NODES if node.startswith("node")]
        for store, ip in zip(stores, NODES.values(), strict=False):
            assert store.line() == f'store "store" ready to accept registrations at {ip}:14567'
            assert store.line() == "monitor at http://0.0.0.0:15304"
        receiver = start("client", "receive", "orders", "--resolver-service", address, "--count", str(len(MESSAGES)))
        named = [part for node, ip in NODES.items() if node.startswith("node") for part in ("--store", f"{ip}:14567")]
        sender = start("client", "send", "orders", "--resolver-service", address, *named)
        assert sender.process.stdin is not None
        sender.write("\n".join(MESSAGES) + "\n")
        assert [receiver.line() for _ in MESSAGES] == MESSAGES
        assert receiver.process.wait() == 0
        sender.process.stdin.close()  # A source that ended earlier would be gone before a slow receiver finds it.
        for probe in ("readinessProbe", "livenessProbe"):
            url = f"http://127.0.0.1:15304{STORE[probe]['httpGet']['path']}"
            script = f"import urllib.request as u; print(u.urlopen('{url}').status)"
            command = ["ip", "netns", "exec", names["node-1"], sys.executable, "-c", script]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "200\n"
