"""The entries of the daemon itself: log, pidfile, user, option file, monitor (P-802..P-808, P-855)."""

from pathlib import Path

from stablecast.config.daemon_outline import ConfigEntry, Outline
from stablecast.config.findings import ConfigFindings, ConfigPlace
from stablecast.config.plan import GROUPS, DaemonPlan, LogConfig, MonitorConfig, StatisticsConfig
from stablecast.runtime.address import MAX_PORT
from stablecast.runtime.interfaces import ANY, address_of
from stablecast.runtime.logs import Frequency

MAX_ID = 0xFFFF_FFFE
"""The largest number of a user or group."""
MAX_LOG_MIB = 1_000_000
MAX_PUBLISHING = 86_400
"""Longest interval of published statistics, in seconds."""

_REQUESTS = "such requests are immediate messages without a topic, whose format is not documented in public"
_OF_STATISTICS = {
    "remote-snapshot-request": f"{_REQUESTS}: ask the monitor, whose /api and /metrics have the same figures",
    "remote-config-changes-request": f"{_REQUESTS}: POST to a monitor with the permission read-write",
    "lbm-config": "statistics are published with the options of the first store",
}

_UNUSED = {
    "lbm-license-file": "no licence is needed",
    "lbm-password-file": "there is no queue browser",
}
_FREQUENCIES = {one.value: one for one in Frequency}


def daemon_plan(outline: Outline, found: ConfigFindings) -> DaemonPlan:
    """Return the plan of the daemon; the last one of repeated entries counts."""
    entries: dict[str, ConfigEntry] = {}
    for name, text in outline.daemon:
        if name in entries:
            found.notice(text.place, f"{name} is repeated: the last one counts")
        entries[name] = text
        if name in _UNUSED:
            found.notice(text.place, f"{name} is read and not used: {_UNUSED[name]}")
    if outline.log_required and "log" not in entries:
        found.problem(ConfigPlace(0, "daemon"), "log is missing: name the file for log lines")
    monitor = entries.get("web-monitor")
    return DaemonPlan(
        log=LogConfig() if "log" not in entries else _log(entries["log"], found),
        pidfile=_path(entries.get("pidfile")),
        uid=_id(entries.get("uid"), "uid", found),
        gid=_id(entries.get("gid"), "gid", found),
        options=_path(entries.get("lbm-config")),
        xml_options=_path(entries.get("xml-config")),
        application=entries["xml-config"].attributes.get("application-name", "") if "xml-config" in entries else "",
        monitor=None if monitor is None else _monitor(monitor, found),
        tls=_path(entries.get("tls")),
        statistics=_statistics(entries.get("daemon-monitor"), found),
    )


def intervals(text: ConfigEntry | None, found: ConfigFindings) -> dict[str, int]:
    """Return the interval of each group of statistics, in seconds."""
    given = {} if text is None else dict(text.attributes)
    wrong = sorted(set(given) - {"default", *GROUPS})
    if text is not None and wrong:
        found.problem(text.place, f"there are no statistics '{wrong[0]}': there are default, {', '.join(GROUPS)}")
        return {}
    return {
        name: found.number(value, 0, MAX_PUBLISHING, text.place, f"the interval of {name} in seconds")
        for name, value in given.items()
        if text is not None
    }


def _statistics(text: ConfigEntry | None, found: ConfigFindings) -> StatisticsConfig | None:
    if text is None:
        return None
    given = dict(text.attributes)
    for name, why in _OF_STATISTICS.items():
        if given.pop(name, "0").strip() not in ("", "0"):
            found.notice(text.place, f"{name} is read and not used: {why}")
    topic = given.pop("topic", StatisticsConfig().topic)
    every = intervals(ConfigEntry("", text.place, given), found)
    if not every:
        found.notice(text.place, "daemon-monitor has no publishing-interval: only stores with their own are published")
    return StatisticsConfig(topic, every)


def _path(text: ConfigEntry | None) -> Path | None:
    return Path(text.value) if text is not None and text.value else None


def _id(text: ConfigEntry | None, what: str, found: ConfigFindings) -> int | None:
    return None if text is None else found.number(text.value, 0, MAX_ID, text.place, what)


def _log(text: ConfigEntry, found: ConfigFindings) -> LogConfig:
    kind = text.attributes.get("type", "file" if text.value else "console").lower()
    if kind not in ("file", "console") or (kind == "file" and not text.value):
        found.problem(text.place, "the type of a log is 'console', or 'file' with the name of the file")
        return LogConfig()
    frequency = text.attributes.get("frequency", Frequency.DISABLE.value).lower()
    if frequency not in _FREQUENCIES:
        found.problem(text.place, f"the frequency of a log is one of {', '.join(_FREQUENCIES)}, not '{frequency}'")
        return LogConfig()
    size = found.number(text.attributes.get("size", "10"), 0, MAX_LOG_MIB, text.place, "the size of a log in MiB")
    return LogConfig(Path(text.value) if kind == "file" else None, _FREQUENCIES[frequency], size)


def _monitor(text: ConfigEntry, found: ConfigFindings) -> MonitorConfig | None:
    host, _, port = text.value.rpartition(":")
    if not host:
        found.problem(text.place, f"the monitor listens at address:port, * for any address, not at '{text.value}'")
        return None
    permission = text.attributes.get("permission", "read-only")
    if permission not in ("read-only", "read-write"):
        found.problem(text.place, f"the permission of the monitor is read-only or read-write, not '{permission}'")
    number = found.number(port, 0, MAX_PORT, text.place, "the port of the monitor")
    host = ANY if host == "*" else host
    token = text.attributes.get("token-file")
    address = found.attempt(text.place, host, lambda: address_of(host))
    return MonitorConfig(address, number, permission == "read-write", Path(token) if token else None)
