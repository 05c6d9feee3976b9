"""The files of routers, in the documented XML form, and in TOML with the same names.

[daemon]
name = "edge"
log = { path = "router.log", type = "file", frequency = "daily" }
web-monitor = "127.0.0.1:15305"

[[portals.endpoint]]
name = "left"
domain-id = 1
sqn-window = { size = 16384, increment = 2048 }
topic-resolution.topic-use-query = { periodic-interval = 300000, rate-limit = { objects-per-second = 500 } }
acl.inbound.ace = [{ match = "reject", pcre-pattern = "^private" }, { match = "accept", pcre-pattern = "." }]
context = { resolver_unicast_daemon = "10.29.3.41:15380" }      # also source, receiver, wildcard_receiver

[[portals.endpoint]]
name = "right"
domain-id = 2
lbm-config = "right.cfg"

[[portals.peer]]
name = "north"
single-tcp.initiator = { address = "10.30.0.7", port = 14380 }   # or single-tcp.acceptor.listen-port

All problems of a file are reported together. A wrong line of an option file that a portal names is left out with a
notice, as documented (R-282).
"""

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
from lxml import etree

from stablecast.config import client_files, client_xml, toml_tree
from stablecast.config.client_configuration import ClientConfiguration, ConfigLayer
from stablecast.config.daemon_outline import ConfigEntry, Outline
from stablecast.config.daemon_section import daemon_plan
from stablecast.config.findings import ConfigFileError, ConfigFindings, ConfigPlace, ConfigProblem
from stablecast.config.option import Option, options_of
from stablecast.config.option_files import SCOPES, Setting
from stablecast.config.setting_checks import option_notices
from stablecast.config.topic_patterns import expression
from stablecast.config.xml_file import entry_of
from stablecast.config.xml_reader import Element, kept_text, parse_plain, place_of, text_of, validate
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.settings import PatternType
from stablecast.router.config import STEP, NumberWindow, PeerConfig, PortalConfig, RouterConfig, RouteTimes
from stablecast.router.elements import DEAD, REFUSED, UNUSED, UNUSED_OF_PEERS
from stablecast.runtime import machine
from stablecast.runtime.address import MAX_PORT, check_ip
from stablecast.runtime.interfaces import address_of
from stablecast.text import unread
from stablecast.transports.routing.access import COMPARISONS, AccessEntry, AccessList, Condition, Subject

ROOT = "tnw-gateway"
APPLICATION = "tnwgd"
"""The application of a router in an XML file of options, by default (documented)."""
LEAST_PORTALS = 2
DTD = machine.installed_file(Path(__file__).with_name("router.dtd")).decode()
"""The document type of the file, which `--dump-dtd` prints."""

PORTAL = options_of(PortalConfig)
"""Elements of an endpoint with a text."""
PEER = options_of(PeerConfig)
"""Elements of a peer portal with a text."""
SIGNS = options_of(PeerConfig, "signs")
"""Attributes of its `gateway-keepalive`."""

_RESOLUTION = {
    "initial-request": "initial",
    "domain-route": "routes",
    "remote-topic-interest": "topic_interest",
    "remote-pattern-interest": "pattern_interest",
    "topic-use-query": "topic_uses",
    "pattern-use-query": "pattern_uses",
}
"""Elements of the resolution of an endpoint, and their fields of its times."""
PORTAL_ATTRIBUTES = {
    path: options_of(PortalConfig, field)
    for path, field in {
        **{f"topic-resolution/{name}": f"times.{field}" for name, field in _RESOLUTION.items()},
        **{f"topic-resolution/{name}/rate-limit": f"times.{field}.rate" for name, field in _RESOLUTION.items()},
        "remote-topic": "times.remote_topics",
        "remote-pattern": "times.remote_patterns",
        "sqn-window": "window",
        "context-query": "times.names",
    }.items()
}
"""Attributes of the elements inside an endpoint, by path."""

_CHANGES = ("backoff-interval", "warning-interval")
ROUTES = {
    path: {name: one for name, one in options_of(RouteTimes).items() if (name in _CHANGES) is is_recalculation}
    for path, is_recalculation in (("route-info", False), ("route-recalculation", True))
}
"""Attributes of the elements about routes, by path."""

_PORT = {"initiator": "port", "acceptor": "listen-port"}
"""The element with the port, for either end of a link."""

_DAEMON = ("log", "uid", "gid", "pidfile", "lbm-license-file", "web-monitor")
"""Elements of the process that daemons of all kinds have."""

_KINDS = {"tcp": "tcp", "lbt-rm": "lbt-rm", "lbtrm": "lbt-rm", "lbt-ru": "lbt-ru", "lbtru": "lbt-ru"} | dict.fromkeys(
    ("lbt-ipc", "lbtipc"), "lbt-ipc"
)
"""Transports as access lists name them."""


def load(path: Path, *, here: bool = True) -> RouterConfig:
    """Return the configuration of a file: TOML if its name ends in .toml, else XML; `here`: of this host.

    Raises:
        ConfigFileError: The configuration has problems.
        OSError: A file cannot be read.
    """
    schema = etree.DTD(StringIO(DTD))
    found = ConfigFindings(here=here)
    root = toml_tree.load(path, ROOT, schema) if path.suffix.lower() == ".toml" else parse_plain(path)
    if path.suffix.lower() == ".toml":
        root.set("version", "1.0")
        _move_options(root)
    _take_out(root, found)
    found.check(str(path))
    validate(root, schema, str(path))
    if root.get("version") != "1.0":
        found.problem(place_of(root), f"version {root.get('version')!r} is not '1.0'")
    config = _Reader(found, path).router(root)
    found.check(str(path))
    notices = (
        attrs.evolve(one, place=attrs.evolve(one.place, path=one.place.path or str(path))) for one in found.notices
    )
    return attrs.evolve(config, notices=tuple(dict.fromkeys(notices)), path=str(path), elsewhere=found.elsewhere)


def _move_options(root: Element) -> None:
    """Write the options of tables as the XML form has them: `context = {...}` becomes entries of lbm-attributes."""
    for portal in root.iterfind("portals/*"):
        for table in [one for one in portal if one.tag in SCOPES]:
            attributes = portal.find("lbm-attributes")
            if attributes is None:
                attributes = etree.SubElement(portal, "lbm-attributes")
            for one in table:
                etree.SubElement(attributes, "option", scope=str(table.tag), name=str(one.tag), value=one.text or "")
            portal.remove(table)


def _take_out(root: Element, found: ConfigFindings) -> None:
    """Remove dead elements with a notice, and add a problem for those that are refused."""
    for element in list(root.iter("*")):
        name, parent = str(element.tag), element.getparent()
        if parent is None or parent.tag == "ace":
            continue
        if name in DEAD:
            found.notice(place_of(element), f"{name} has no effect, here and where it was documented: take it out")
            parent.remove(element)
        elif name in REFUSED and parent.tag in ("peer", "single-tcp"):
            found.problem(place_of(element), REFUSED[name])


@attrs.frozen
class _Reader:
    """The reader of one file, whose tree follows the document type."""

    found: ConfigFindings
    path: Path

    def router(self, root: Element) -> RouterConfig:
        daemon = root.find("daemon")
        entries = () if daemon is None else tuple(self._entries(daemon))
        plan = daemon_plan(Outline(str(self.path), entries, ()), self.found)
        name = root.find("daemon/name")
        routes = RouteTimes()
        for path, options in ROUTES.items():
            for element in root.iterfind(f"daemon/{path}"):
                routes = self._attributes(routes, element, options)
        for unused, reason in UNUSED.items():
            for element in (*root.iterfind(f"daemon/{unused}"), *root.iterfind(f"portals/endpoint/{unused}")):
                self._unused(element, reason)
        for unused, reason in UNUSED_OF_PEERS.items():
            for element in root.iterfind(f"portals/peer/{unused}"):
                self._unused(element, reason)
        files = root.findall("daemon/xml-config")
        elements = root.findall("portals/endpoint")
        portals = [self._portal(element, files[-1] if files else None) for element in elements]
        peer_elements = root.findall("portals/peer")
        peers = [self._peer(element) for element in peer_elements]
        names = [*(one.name for one in portals), *(one.name for one in peers)]
        self._apart("name", [*elements, *peer_elements], names)
        self._apart("domain", elements, [one.domain for one in portals])
        places = ["" if one.address or not one.port else f"{one.interface}:{one.port}" for one in peers]
        self._apart("listen-port", peer_elements, places)
        if len(portals) + len(peers) < LEAST_PORTALS:
            text = f"a router has {LEAST_PORTALS} portals at least, one for each domain and each router that it joins"
            self.found.problem(place_of(root), text)
        shown = self.path.stem if name is None or not kept_text(name) else kept_text(name)
        return RouterConfig(shown, tuple(portals), tuple(peers), plan, routes)

    def _unused(self, element: Element, reason: str) -> None:
        self.found.notice(place_of(element), f"{element.tag!s} has no effect: {reason}")

    def _entries(self, daemon: Element) -> Iterable[tuple[str, ConfigEntry]]:
        """Yield the entries that all daemons have, as this file means them."""
        for element in daemon:
            if element.tag not in _DAEMON:
                continue
            entry = entry_of(element)
            if element.tag == "log":
                kind = entry.attributes.get("type", "file" if entry.value else "console")
                if kind == "syslog":
                    self.found.notice(
                        entry.place, "lines go to the console, from which systemd takes them, not to syslog"
                    )
                    kind = "console"
                entry = attrs.evolve(entry, attributes={"size": "0", **entry.attributes, "type": kind})
            yield str(element.tag), entry

    def _apart(self, what: str, elements: Sequence[Element], values: Sequence[object]) -> None:
        """Report names, domains and ports that two portals share."""
        reason = "a router is in a domain once" if what == "domain" else "give each another one"
        for place, (element, value) in enumerate(zip(elements, values, strict=True)):
            if value and value in values[:place]:
                self.found.problem(place_of(element), f"two portals have the {what} '{value}': {reason}")

    def _attributes(self, config: Any, element: Element, options: Mapping[str, Option]) -> Any:
        for name, value in element.attrib.items():
            if str(name) in options:
                config = self.found.configured(config, options, str(name), str(value), place_of(element))
        return config

    # ------------------------------------------------------------------------------------------------------- portals

    def _portal(self, element: Element, xml_config: Element | None) -> PortalConfig:
        portal, place = PortalConfig(), place_of(element)
        for child in element:
            if str(child.tag) in PORTAL:
                text = kept_text(child)
                portal = self.found.configured(portal, PORTAL, str(child.tag), text, place_of(child))
        for path, options in PORTAL_ATTRIBUTES.items():
            for child in element.iterfind(path):
                portal = self._attributes(portal, child, options)
        for name in ("name", "domain-id"):
            if element.find(name) is None:
                self.found.problem(place, f"the portal has no {name}")
        self._check(element, portal.window)
        self._check_times(element, portal)
        inbound, outbound = (self._list(element.find(f"acl/{way}")) for way in ("inbound", "outbound"))
        made = self._options(element, portal, xml_config)
        return attrs.evolve(portal, inbound=inbound, outbound=outbound, options=made)

    def _peer(self, element: Element) -> PeerConfig:
        peer, place = PeerConfig(), place_of(element)
        for child in element:
            if str(child.tag) in PEER:
                peer = self.found.configured(peer, PEER, str(child.tag), kept_text(child), place_of(child))
        if not peer.name:
            self.found.problem(place, "the portal has no name")
        for child in element.iterfind("gateway-keepalive"):
            peer = self._attributes(peer, child, SIGNS)
            if child.get("idle") is not None:
                self.found.notice(place_of(child), "idle has no effect: links are asked for signs of life always")
        for child in element.iterfind("sqn-window"):
            peer = attrs.evolve(peer, window=self._attributes(peer.window, child, options_of(NumberWindow)))
        self._check(element, peer.window)
        inbound, outbound = (self._list(element.find(f"acl/{way}")) for way in ("inbound", "outbound"))
        return attrs.evolve(self._link(element, peer), inbound=inbound, outbound=outbound)

    def _link(self, element: Element, peer: PeerConfig) -> PeerConfig:
        """Return a peer portal with the ends of its connection."""
        ends = [one for name in ("initiator", "acceptor") for one in element.iterfind(f"single-tcp/{name}")]
        if len(ends) != 1:
            text = "single-tcp has one initiator, which connects, or one acceptor, which listens"
            self.found.problem(place_of(element), text)
            return peer
        (end,) = ends
        place = place_of(end)
        address, port = (
            text_of(one) if (one := end.find(name)) is not None else "" for name in ("address", _PORT[str(end.tag)])
        )
        if end.tag == "initiator" and not address:
            self.found.problem(place, "the initiator has no address of the other router")
        interface = text_of(one) if (one := element.find("single-tcp/interface")) is not None else ""
        if interface:
            interface = self.found.attempt(place, "", lambda: address_of(interface))
        number = self.found.number(port, 1, MAX_PORT, place, "the port")
        return attrs.evolve(peer, address=address, port=number, interface=interface)

    def _check(self, element: Element, window: NumberWindow) -> None:
        for name in {str(one.tag) for one in element if one.tag != "route-group"}:
            if len(again := element.findall(name)) > 1:
                self.found.problem(place_of(again[1]), f"{name} is repeated: write it once")
        size, increment = window.size, window.increment
        for one in element.iterfind("sqn-window"):
            if size % STEP or increment % STEP or size % increment or increment >= size:
                text = f"size {size} must be a multiple of increment {increment}, both multiples of {STEP}"
                self.found.problem(place_of(one), f"{text}, and the increment the smaller one")
        for hotlink in element.iterfind("hotlink-index"):
            if text_of(hotlink) != "0":
                self.found.problem(place_of(hotlink), "there are no hotlinks: leave out hotlink-index, or write 0")
        for smart in element.iterfind("smart-batch"):
            if self.found.number(text_of(smart), 0, 1, place_of(smart), "smart-batch") == 0:
                self.found.notice(
                    place_of(smart), "smart-batch 0 has no effect: a batch leaves when nothing else waits"
                )

    def _check_times(self, element: Element, portal: PortalConfig) -> None:
        for name in ("domain-route", "remote-topic-interest", "remote-pattern-interest"):
            for one in element.iterfind(f"topic-resolution/{name}"):
                field = getattr(portal.times, _RESOLUTION[name])
                if field.shortest_ns > field.longest_ns:
                    self.found.problem(place_of(one), "min-interval is above max-interval")

    # -------------------------------------------------------------------------------------------------- access lists

    def _list(self, element: Element | None) -> AccessList | None:
        return None if element is None else tuple(self._entry(one, str(element.tag)) for one in element)

    def _entry(self, element: Element, way: str) -> AccessEntry:
        made = (self._condition(one, way) for one in element)
        return AccessEntry(element.get("match") == "accept", tuple(one for one in made if one is not None))

    def _condition(self, element: Element, way: str) -> Condition | None:
        place, name = place_of(element), str(element.tag)
        if name == "xport-id":
            self.found.problem(place, "there is no transport LBT-IPC here, so this condition would never hold")
            return None
        subject = Subject(name)
        if subject in (Subject.TOPIC, Subject.PCRE, Subject.REGEX):
            return self._about_topic(subject, kept_text(element), place)
        if way == "outbound":
            text = f"an outbound list decides by topics and patterns, and {name} could not apply: take it out"
            self.found.problem(place, text)
            return None
        comparison = COMPARISONS.get(element.get("comparison", "").lower())
        if comparison is None:
            self.found.problem(place, f"'{element.get('comparison')}' is no comparison: {', '.join(COMPARISONS)}")
            return None
        return self._about_session(subject, comparison, element.get("value", ""), place)

    def _about_topic(self, subject: Subject, text: str, place: ConfigPlace) -> Condition | None:
        if not text:
            self.found.problem(place, "write the topic or the pattern as the text of this element")
            return None
        if subject is Subject.TOPIC:
            return Condition(subject, text)
        kind = PatternType.PCRE if subject is Subject.PCRE else PatternType.REGEXP
        return Condition(subject, self.found.attempt(place, text, lambda: expression(text, kind)))

    def _about_session(self, subject: Subject, comparison: str, text: str, place: ConfigPlace) -> Condition | None:
        match subject:
            case Subject.TRANSPORT:
                if text.lower() not in _KINDS or comparison not in ("eq", "ne"):
                    choices = ", ".join(dict.fromkeys(_KINDS.values()))
                    self.found.problem(place, f"a transport is compared by eq or ne with one of {choices}")
                    return None
                return Condition(subject, _KINDS[text.lower()], comparison)
            case Subject.SOURCE_ADDRESS | Subject.GROUP:
                address = self.found.attempt(place, "0.0.0.0", lambda: check_ip(text))  # noqa: S104 - no interface
                return Condition(subject, int(ipaddress.IPv4Address(address)), comparison)
            case _:
                return Condition(subject, self.found.number(text, 0, MAX_PORT, place, "the port"), comparison)

    # ------------------------------------------------------------------------------------------------------- options

    def _options(self, element: Element, portal: PortalConfig, xml_config: Element | None) -> ClientConfiguration:
        """Return the options of a portal in the documented order: xml-config above lbm-attributes above lbm-config."""
        layers = [layer for one in element.iterfind("lbm-config") for layer in self._file(one)]
        layers.append(ConfigLayer(str(self.path), tuple(self._own_options(element))))
        if xml_config is not None:
            layers += self._xml_layers(xml_config, portal)
        made = ClientConfiguration(tuple(layers))
        place = place_of(element)
        options = attrs.evolve(portal, options=made)
        for use in (lambda: options.resolution, options.transport, options.receiving):
            self.found.attempt(place, None, use)
        interface = self.found.attempt(place, None, lambda: options.context.interface)
        if interface:
            self.found.attempt(place, "", lambda: address_of(interface))
        return made

    def _own_options(self, element: Element) -> Iterator[Setting]:
        """Yield the options of a portal in the router's own file; a wrong one is a problem, and left out."""
        for one in element.iterfind("lbm-attributes/option"):
            scope, name, line = one.get("scope", ""), one.get("name", "").lower(), one.sourceline or 0
            setting = Setting(scope, name, one.get("value", ""), line, str(self.path))
            place = place_of(one) if line else ConfigPlace(0, f"{place_of(element).element}.{scope}.{name}")
            if self.found.tried(place, lambda setting=setting: option_notices(setting)):  # type: ignore[misc]
                yield setting

    def _file(self, element: Element) -> list[ConfigLayer]:
        path = Path(kept_text(element))
        return [self._sound(layer) for layer in self._read(element, lambda: client_files.layers([path])) or ()]

    def _xml_layers(self, element: Element, portal: PortalConfig) -> list[ConfigLayer]:
        """Return the options of both contexts of a portal; each counts for its side, and the sources' for both."""
        path, application = Path(kept_text(element)), element.get("application-name", "")
        found = []
        for name, scopes in (
            (portal.receiver_context_name, ("context", "receiver", "wildcard_receiver")),
            (portal.source_context_name, ("context", "source")),
        ):
            selection = client_xml.Selection(
                application, name, usual_application=APPLICATION, usual_context=portal.name
            )
            layer = self._read(element, lambda selection=selection: client_xml.load(path, selection))  # type: ignore[misc]
            if layer is not None:
                found.append(_only(self._sound(layer), scopes))
        return found

    def _read(self, element: Element, read: Callable[[], Any]) -> Any:
        """Return what `read` returns; None with a notice for wrong contents, and with a problem for an unreadable file.

        A router without any of its options would join a wrong domain, so an unreadable file stops it.
        """
        try:
            return read()
        except ConfigFileError as error:
            self.found.notices += error.problems
        except OSError as error:
            self.found.problem(place_of(element), unread(Path(kept_text(element)), error))
        return None

    def _sound(self, layer: ConfigLayer) -> ConfigLayer:
        """Return a layer without its wrong options, each of which gets a notice."""
        self.found.notices += layer.problems
        wrong = {one for one in dict.fromkeys(layer.all_settings) if not self._is_sound(one)}
        return attrs.evolve(
            layer,
            settings=tuple(one for one in layer.settings if one not in wrong),
            sections=tuple(
                attrs.evolve(section, settings=tuple(one for one in section.settings if one not in wrong))
                for section in layer.sections
            ),
        )

    def _is_sound(self, setting: Setting) -> bool:
        try:
            self.found.notices += [ConfigProblem(setting.place, text) for text in option_notices(setting)]
        except StablecastError as error:
            self.found.notice(setting.place, f"this line is left out: {error}")
            return False
        return True


def _only(layer: ConfigLayer, scopes: Iterable[str]) -> ConfigLayer:
    kept = set(scopes)
    return attrs.evolve(
        layer,
        settings=tuple(one for one in layer.settings if one.scope in kept),
        sections=tuple(one for one in layer.sections if one.scope in kept),
        restrictions={scope: one for scope, one in layer.restrictions.items() if scope in kept},
        values=tuple(one for one in layer.values if one.scope in kept),
    )
