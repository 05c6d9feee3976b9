"""The kind of a configuration file, by its content: of a store daemon, or of a client."""

from enum import Enum
from pathlib import Path

from stablecast.config.findings import ConfigFileError, ConfigPlace, ConfigProblem

XML, TOML = ".xml", ".toml"


class FileKind(Enum):
    """The programs that a file configures: store daemons, or clients."""

    DAEMON = "store daemon"
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

        return FileKind.DAEMON if {"store", "daemon"} & set(toml_file.read(path)) else FileKind.CLIENT
    return FileKind.CLIENT


def _of_xml(path: Path) -> FileKind:
    from stablecast.config import client_xml, xml_file, xml_reader  # noqa: PLC0415 - option files need no parser

    root = xml_reader.parse(xml_reader.read(path), str(path))
    kinds = {xml_file.ROOT: FileKind.DAEMON, client_xml.ROOT: FileKind.CLIENT}
    if str(root.tag) not in kinds:
        others = {"lbmrd": "check it with `stablecast lbmrd -v`", "um-srs": "check it with `stablecast srs -v`"}
        text = others.get(str(root.tag), f"the outermost element must be <{xml_file.ROOT}> or <{client_xml.ROOT}>")
        raise ConfigFileError(str(path), [ConfigProblem(ConfigPlace(root.sourceline or 0, str(root.tag)), text)])
    return kinds[str(root.tag)]
