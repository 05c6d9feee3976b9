"""The daemons of this host that configuration files name, for `stablecast up --config`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from stablecast.config import client_files
from stablecast.config.client_configuration import ClientConfiguration
from stablecast.config.file_kinds import FileKind, kind_of
from stablecast.config.options import apply
from stablecast.config.profiles import profile
from stablecast.config.resolution_options import ResolutionSettings, configured, own, with_old_relay
from stablecast.config.transport_options import split
from stablecast.core.errors import ConfigError
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import SourceConfig
from stablecast.runtime import address, machine
from stablecast.runtime.interfaces import ANY, interfaces, resolved_place
from stablecast.text.console import note


@attrs.frozen
class NamedDaemon:
    """A daemon to run.

    Attributes:
        name: Its name for people.
        arguments: The arguments of its command.
        kind: What it is: relay, service, router or store.
        directory: Where a store has its files, if the cluster chose that; made before each start.
        known_as: The name of stores in later runs, wherever these are started.
    """

    name: str
    arguments: list[str]
    kind: str
    directory: Path | None = None
    known_as: str = attrs.field(default=attrs.Factory(lambda self: self.name, takes_self=True))


_COMMANDS = {
    FileKind.DAEMON: ("store", "store"),
    FileKind.RELAY: ("lbmrd", "relay"),
    FileKind.SERVICE: ("srs", "service"),
    FileKind.ROUTER: ("router", "router"),
}
"""The command that runs the file of a daemon, and its kind."""


def named_daemons(files: Sequence[Path], application: str, context: str, directory: Path) -> list[NamedDaemon]:
    """Return the daemons that files name and that belong on this host, and print the others.

    Raises:
        ConfigError: The files name no daemon of this host.
        ConfigFileError, OptionError, AddressError: A file is wrong.
        OSError: A file cannot be read, or the directory cannot be written.
    """
    kinds = {path: kind_of(path) for path in files}
    clients = [path for path in files if kinds[path] is FileKind.CLIENT]
    found = [
        NamedDaemon(f"{kinds[path].value} {path}", [command, str(path), "--json"], what, known_as=str(path.resolve()))
        for path in files
        if path not in clients
        for command, what in [_COMMANDS[kinds[path]]]
    ]
    if clients:
        configuration = client_files.load(clients, application, context)
        for notice in configuration.notices:
            note(notice.told(""))
        found += _of_client(configuration, directory)
    if not found:
        raise ConfigError("the configuration names no relay, service, router or store of this host")
    return found


def _of_client(configuration: ClientConfiguration, directory: Path) -> Iterator[NamedDaemon]:
    resolution = with_old_relay(configured(ResolutionSettings(), configuration.of_context()[0]))
    for relay in filter(_is_here, resolution.relays):
        yield NamedDaemon(f"lbmrd {relay}", ["lbmrd", "--listen", relay, "--json"], "relay")
    for service in filter(_is_here, resolution.services):
        host, port = address.parse(resolved_place(service))
        yield NamedDaemon(f"srs {service}", ["srs", "--interface", host, "--port", str(port), "--json"], "service")
    _, options = own(resolution.config.advertise, configuration.of_endpoint("source"))
    source = apply("source", profile("safe").source, split(options)[1])
    for spec in source.stores:
        if spec.name and not address.is_host(spec.name):
            yield _named_store(spec.name, source, configuration, directory)
        elif _is_here(place := spec.address or spec.name):
            yield _store(resolved_place(place), source, directory)


def _store(place: str, source: SourceConfig, directory: Path) -> NamedDaemon:
    files = directory / f"store-{place.replace(':', '-')}"
    options = [part for name, value in _permitted(source).items() for part in ("-o", f"{name}={value}")]
    arguments = ["store", str(files), "--listen", place, "--json", *options]
    return NamedDaemon(f"store {place}", arguments, "store", files)


def _named_store(name: str, source: SourceConfig, configuration: ClientConfiguration, directory: Path) -> NamedDaemon:
    """Return a store that has a name: it needs a file, because its name is resolved as the client resolves topics."""
    files = directory / f"store-{name}"
    own_context = configuration.of_context()[1]
    quoted = {key: json.dumps(str(value)) for key, value in configuration.of_context()[0].items()}
    context = "\n".join(f"{key} = {value}" for key, value in quoted.items())
    proxies, *topic = _permitted(source).items()
    options = ", ".join(f"{key} = {value}" for key, value in topic)
    config = directory / f"store-{name}.toml"  # Beside the files, which may be lost.
    text = (
        f'[[store]]\nname = "{name}"\nport = 0\ninterface = "{own_context.interface or ANY}"\n'
        f'options = {{ context-name = "{name}", {proxies[0]} = {proxies[1]}, '
        f"disk-cache-directory = {json.dumps(str(files))}, disk-state-directory = {json.dumps(str(files))} }}\n"
        f'[[store.topic]]\npattern = "."\ntype = "PCRE"\noptions = {{ {options} }}\n[store.context]\n{context}\n'
    )
    machine.files.write_bytes(config, text.encode())
    return NamedDaemon(f"store {name}", ["store", str(config), "--json"], "store", files)


def _permitted(source: SourceConfig) -> dict[str, int]:
    """Return what a store must permit for this source: proxies, pacing by receivers, early acknowledgement."""
    paced = int(source.pace is Pace.RECEIVERS)
    return {
        "allow-proxy-source": int(source.wants_proxy),
        "repository-allow-receiver-paced-persistence": paced,
        "repository-allow-ack-on-reception": paced,
    }


def _is_here(place: str) -> bool:
    """Return whether a place is on this host; print one that is not."""
    host, _ = address.parse(resolved_place(place))
    here = host.startswith("127.") or any(one.address == host for one in interfaces())
    if not here:
        note(f"{place} is on another host: start its daemon there")
    return here
