"""The documented XML configuration of clients: templates, applications, contexts, and sections of topics (T-003).

Templates and options apply in the documented order, and the later one wins: the application's templates, those of all
its contexts, the context's templates and options, those of all sources or receivers, the topic's templates and options.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs
from lxml import etree

from stablecast.config.client_configuration import ConfigLayer, Restriction, TopicRule, TopicSection, ValueRule
from stablecast.config.findings import ConfigFindings, read_bytes
from stablecast.config.option_files import SCOPES, Setting
from stablecast.config.topic_patterns import expression
from stablecast.config.xml_reader import Element, parse, place_of, text_of, validate
from stablecast.core.protocol.settings import PatternType
from stablecast.runtime import machine
from stablecast.text import nearest

ROOT = "um-configuration"
ALLOW_FIRST, DENY_FIRST = "allow,deny", "deny,allow"

DTD = machine.installed_file(Path(__file__).with_name("client.dtd")).decode()
"""The document type of the file; a message about a wrong name has the nearest right one."""

CONTAINERS = {"sources": "source", "receivers": "receiver", "wildcard-receivers": "wildcard_receiver"}
"""The elements that have sections of topics, and the scope of their options."""


@attrs.frozen
class Selection:
    """The application and the context of it whose options are read; empty: those without a name, or the only one.

    `usual_application` and `usual_context` are read instead of those without a name, if the file has them.
    """

    application: str = ""
    context: str = ""
    usual_context: str = ""
    usual_application: str = ""

    def all_of(self, path: Path) -> "list[tuple[Selection, str]]":
        """Return the contexts of a file that this selection may mean, each with its name for people.

        Raises ConfigFileError if the file is no XML, and OSError if it cannot be read.
        """
        found: list[tuple[Selection, str]] = []
        applications = _named(parse(read_bytes(path), str(path)).iterfind("applications/application"), self.application)
        for application in applications:
            contexts = [one.get("name", "") for one in _named(application.iterfind("contexts/context"), self.context)]
            for named in contexts or [""]:
                texts = [f'application "{application.get("name", "")}"'] if len(applications) > 1 else []
                texts += [f'context "{named}"'] if len(contexts) > 1 else []
                chosen = Selection(application.get("name", "") or self.application, named or self.context)
                found.append((chosen, "".join(f": {text}" for text in texts)))
        return found or [(self, "")]


def _named(elements: Iterable[Element], name: str) -> list[Element]:
    """Return the elements of this name; all of them without one."""
    return [one for one in elements if not name or one.get("name", "") == name]


def load(path: Path, selection: Selection = Selection()) -> ConfigLayer:
    """Return the options of a file for one application. Raises ConfigFileError, and OSError if it cannot be read."""
    return parse_layer(parse(read_bytes(path), str(path)), str(path), selection)


def parse_layer(root: Element, where: str, selection: Selection = Selection()) -> ConfigLayer:
    """Return the options of a document `where`. Raises ConfigFileError."""
    validate(root, etree.DTD(io.StringIO(DTD)), where)
    return _ClientXml(path=where, root=root).layer(selection)


@attrs.define
class _ClientXml(ConfigFindings):
    """One document, and the problems of all its elements."""

    path: str = attrs.field(kw_only=True)
    root: Element = attrs.field(kw_only=True)
    rules: list[ValueRule] = attrs.field(factory=list)

    def layer(self, selection: Selection) -> ConfigLayer:
        self._check_templates()
        settings: list[Setting] = []
        sections: list[TopicSection] = []
        restrictions: dict[str, Restriction] = {}
        applications = self.root.findall("applications/application")
        application = self._select("application", applications, selection.application, selection.usual_application)
        if application is not None:
            settings += self._of_templates(application)
            for queue in application.iterfind("event-queues/event-queue"):
                settings += [*self._of_templates(queue, ("event_queue",)), *self._direct(queue)]
            context = self._context(application, selection, settings)
            if context is not None:
                settings += [*self._of_templates(context), *self._direct(context)]
                for container in (one for one in context if one.tag in CONTAINERS):
                    scope = CONTAINERS[str(container.tag)]
                    settings += self._of_templates(container)
                    sections += self._sections(container, scope)
                    self._restrict(container, scope, restrictions)
        self.check(self.path)
        return ConfigLayer(self.path, tuple(settings), tuple(sections), restrictions, tuple(self.rules))

    def _context(self, application: Element, selection: Selection, settings: list[Setting]) -> Element | None:
        contexts = application.find("contexts")
        if contexts is None:
            return None
        settings += self._of_templates(contexts)
        return self._select("context", contexts.findall("context"), selection.context, selection.usual_context)

    def _select(self, what: str, found: Sequence[Element], name: str, usual: str = "") -> Element | None:
        """Return the element of a name; without one, that of the usual name, the nameless one, or the only one."""
        wanted = (name,) if name or not usual else (usual, "")
        chosen = [one for wish in wanted for one in found if one.get("name", "") == wish]
        if chosen:
            return chosen[0]
        if not name and len(found) < 2:
            return found[0] if found else None
        known = sorted(one.get("name", "") for one in found)
        names = ", ".join(known) or "none"
        asked = f"there is no {what} '{name}'" if name else f"the file has several: name the {what}"
        self.problem(
            place_of(found[0] if found else self.root), f"{asked}: {nearest(name, known) or f'it has {names}'}"
        )
        return None

    # ------------------------------------------------------------------------------------------------------- options

    def _check_templates(self) -> None:
        for template in self.root.iterfind("templates/template"):
            list(self._direct(template))
        self.rules.clear()

    def _of_templates(self, element: Element, scopes: Sequence[str] = SCOPES) -> Iterator[Setting]:
        """Yield the options of the templates that an element names, the first template first."""
        known = {one.get("name", ""): one for one in self.root.iterfind("templates/template")}
        for name in (part.strip() for part in element.get("template", "").split(",")):
            if name and name not in known:
                remedy = nearest(name, known) or f"the file has {', '.join(known) or 'none'}"
                self.problem(place_of(element), f"there is no template '{name}': {remedy}")
            elif name:
                yield from (setting for setting in self._direct(known[name]) if setting.scope in scopes)

    def _direct(self, element: Element) -> Iterator[Setting]:
        for options in element.iterfind("options"):
            scope = options.get("type", "").lower().replace("-", "_")
            if scope not in SCOPES:
                names = ", ".join(name.replace("_", "-") for name in SCOPES)
                self.problem(place_of(options), f"there is no scope '{options.get('type')}': write one of {names}")
                continue
            for option in options.iterfind("option"):
                yield from self._option(option, scope)

    def _option(self, option: Element, scope: str) -> Iterator[Setting]:
        name, value = option.get("name", "").lower(), option.get("default-value")
        where = f"{self.path}:{place_of(option)}"
        given = tuple((rule.tag == "allow", text_of(rule)) for rule in option)
        if given or option.get("order") == ALLOW_FIRST:
            self.rules.append(ValueRule(scope, name, where, self._otherwise(option), given))
        if value is not None:
            yield Setting(scope, name, value.strip(), option.sourceline or 0, self.path)

    # -------------------------------------------------------------------------------------------------------- topics

    def _sections(self, container: Element, scope: str) -> Iterator[TopicSection]:
        for topic in container:
            settings = tuple(
                setting for setting in (*self._of_templates(topic), *self._direct(topic)) if setting.scope == scope
            )
            name, pattern = self._matched(topic)
            if name or pattern:
                yield TopicSection(scope, settings, name, pattern)

    def _restrict(self, container: Element, scope: str, restrictions: dict[str, Restriction]) -> None:
        rules = [
            TopicRule(topic.get("rule") == "allow", *self._matched(topic)) for topic in container if topic.get("rule")
        ]
        if rules or container.get("order") == ALLOW_FIRST:
            where = f"{self.path}:{place_of(container)}"
            restrictions[scope] = Restriction(where, self._otherwise(container), tuple(rules))

    def _matched(self, topic: Element) -> tuple[str, str]:
        """Return the name and the pattern of a section; add a problem if it has neither or both."""
        name, pattern = topic.get("topicname", ""), topic.get("pattern", "")
        if bool(name) == bool(pattern):
            keys = "topicname or pattern" if topic.tag == "topic" else "pattern"
            self.problem(place_of(topic), f"this section needs {keys}, and not both")
            return "", ""
        kind = PatternType.REGEXP if topic.get("pattern-type", "").lower().startswith("regex") else PatternType.PCRE
        return name, self.attempt(place_of(topic), "", lambda: expression(pattern, kind) if pattern else "")

    def _otherwise(self, element: Element) -> bool:
        """Return what the order of rules says about what no rule names: the last word of it."""
        order = element.get("order", DENY_FIRST).replace(" ", "")
        if order not in (ALLOW_FIRST, DENY_FIRST):
            self.problem(place_of(element), f"the order of rules is '{ALLOW_FIRST}' or '{DENY_FIRST}', not '{order}'")
        return order != ALLOW_FIRST
