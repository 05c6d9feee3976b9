"""The kind of a configuration file, by its content: of a daemon, or of a client."""

from enum import Enum
from pathlib import Path

from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem, read_bytes

XML, TOML = ".xml", ".toml"


class FileKind(Enum):
    """The programs that a file configures: store daemons, relays, services, routers, or clients."""

    DAEMON = "store daemon"
    RELAY = "relay"
    SERVICE = "service"
    ROUTER = "router"
    CLIENT = "client"


def kind_of(path: Path) -> FileKind:
    """Return the programs that a file configures.

    Raises:
        ConfigFileError: It is malformed, or configures something else.
        OSError: It cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix == XML:
        return _of_xml(path)
    if suffix == TOML:
        from stablecast.config import toml_file  # noqa: PLC0415 - option files need no parser

        tables = set(toml_file.read(path))
        if "srs" in tables:
            return FileKind.SERVICE
        if "portals" in tables:
            return FileKind.ROUTER
        return FileKind.DAEMON if {"store", "daemon"} & tables else FileKind.CLIENT
    return FileKind.CLIENT


_OTHERS = {"lbmrd": FileKind.RELAY, "um-srs": FileKind.SERVICE, "tnw-gateway": FileKind.ROUTER}
"""The outermost elements of relays, services and routers."""


def _of_xml(path: Path) -> FileKind:
    from stablecast.config import client_xml, xml_file, xml_reader  # noqa: PLC0415 - option files need no parser

    root = xml_reader.parse(read_bytes(path), str(path))
    kinds = {xml_file.ROOT: FileKind.DAEMON, client_xml.ROOT: FileKind.CLIENT, **_OTHERS}
    if str(root.tag) not in kinds:
        text = f"the outermost element must be one of {', '.join(kinds)}; collectors are not here"
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(root.sourceline or 0, str(root.tag)), text)])
    return kinds[str(root.tag)]
