"""The configuration of a service: its values and its problems."""

from pathlib import Path
from typing import Any

import pytest

from stablecast.config.findings import ConfigFileError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.resolver.srs.config import SrsConfig, SrsLogConfig, load, parse
from stablecast.runtime.logs import Compression, Frequency

EXAMPLE = """
[srs]
interface = "10.29.3.41"
port = 12000
state-lifetime = 100
interest-state-lifetime = 0
source-leave-backoff = 250

[daemon]
pid-file = "srs.pid"

[daemon.monitor]
publishing-interval = 1000

[daemon.log]
type = "file"
name = "srs.log"
frequency = "daily"
size = 23
compression = "gzip"
"""


@pytest.mark.rows("T-417", "T-422")
def test_the_defaults() -> None:
    """A day for both, half a second of backoff, port 27000."""
    config = parse({})
    assert config == SrsConfig()
    service = config.service()
    assert service.source_lifetime_ns == service.interest_lifetime_ns == 86_400 * SECOND
    assert service.leave_backoff_ns == 500 * MILLISECOND
    assert (config.port, config.log.name) == (27_000, None)


@pytest.mark.rows("T-417")
def test_a_file(tmp_path: Path) -> None:
    """The old lifetime is the default of the two new ones."""
    path = tmp_path / "srs.toml"
    path.write_text(EXAMPLE)
    config = load(path)
    assert (config.interface, config.port) == ("10.29.3.41", 12_000)
    service = config.service()
    assert (service.source_lifetime_ns, service.interest_lifetime_ns) == (100 * SECOND, 0)
    assert config.log == SrsLogConfig(Path("srs.log"), Frequency.DAILY, size=23, compression=Compression.GZIP)
    assert (config.publishing_interval, config.pid_file) == (1_000, Path("srs.pid"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("srs = 1", "srs: this must be a table"),
        ("[srs]\nprot = 1", "srs.prot: there is no 'prot' here: there are application-id, interest-state-lifetime"),
        ("[srs]\nport = 70000", "srs.port: option port must lie between 0 and 65535, not 70000"),
        ("[srs]\nport = true", "option port wants a whole number"),
        ("[srs]\ninterface = ''", "option interface wants a text"),
        ("[deamon]", "deamon: there is no 'deamon' here: there are daemon, srs"),
        ("[daemon]\nlog = 3", "daemon.log: this must be a table"),
        ("[daemon.log]\ntype = 'file'", "a log has the type 'file' with a name"),
        ("[daemon.log]\nname = 'x'", "a log has the type 'file' with a name"),
        ("[daemon.log]\ntype = 'syslog'", "a log has the type 'file' with a name"),
        ("[daemon.log]\ncompression = '7z'", r"compression must be one of none, zip, gzip, not '7z'"),
        ("[daemon.log]\nfrequency = 'weekly'", r"frequency must be one of disable, daily, hourly, not 'weekly'"),
        ("[daemon.monitor]\npublishing-interval = 199", "must lie between 200 and 7776000000, not 199"),
        ("[daemon]\npid-file = 1", "daemon.pid-file: option pid-file wants a text, not 1"),
        ("[srs", "is no TOML"),
    ],
)
def test_problems_are_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "srs.toml"
    path.write_text(text)
    with pytest.raises(ConfigFileError, match=told) as error:
        load(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("value", [-1, 20_736_001])
def test_lifetimes_are_bounded(value: Any) -> None:
    with pytest.raises(ConfigFileError, match="between 0 and 20736000"):
        parse({"srs": {"state-lifetime": value}})


@pytest.mark.parametrize("value", ["x", 1.5, True])
def test_lifetimes_are_whole_numbers(value: Any) -> None:
    with pytest.raises(ConfigFileError, match="state-lifetime wants a whole number"):
        parse({"srs": {"state-lifetime": value}})


def test_all_problems_of_a_file_are_reported_together() -> None:
    with pytest.raises(ConfigFileError) as raised:
        parse({"srs": {"port": -1, "colour": 1}, "daemon": {"log": {"size": -1}}}, "srs.toml")
    assert [str(one.place) for one in raised.value.problems] == ["srs.port", "srs.colour", "daemon.log"]
