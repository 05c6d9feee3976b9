"""The document type of a store's XML configuration, by version (P-847, P-854).

Version 1.0 has stores. Versions 1.1 and 1.2 add queues, which this daemon does not support. Version 1.3 adds restoring
by age, and the statistics to publish. A daemon validates each file by the document type of its version.
"""

VERSIONS = ("1.0", "1.1", "1.2", "1.3")
NEWEST = "1.3"

_TEXTS = {
    "1.0": ("log", "pidfile", "uid", "gid", "lbm-config", "lbm-license-file", "web-monitor"),
    "1.3": ("xml-config", "lbm-password-file"),
}
DAEMON_TEXTS = (*_TEXTS["1.0"], *_TEXTS["1.3"])
"""Entries of the daemon that are a text, in the newest version."""
_SPACE = "xml:space (default | preserve) 'default'"
_ATTRIBUTES = {
    "log": "type CDATA #IMPLIED",
    "web-monitor": "permission (read-only | read-write) #IMPLIED",
}
_ATTRIBUTES_1_3 = {
    **_ATTRIBUTES,
    "log": "type CDATA #IMPLIED frequency CDATA #IMPLIED size CDATA #IMPLIED",
    "xml-config": "application-name CDATA #IMPLIED",
}


def dtd(version: str) -> str:
    texts = _TEXTS["1.0"] + (("lbm-password-file",) if version in ("1.1", "1.2") else ())
    attributes = _ATTRIBUTES
    restore, first = "", "(ume-attributes | topics)+"
    queues = "" if version in ("1.0", "1.3") else ", queues?"
    kinds = "lbm-receiver | lbm-context | lbm-source | store" + (" | queue" if queues else "")
    monitors: tuple[str, ...] = ()
    if version == NEWEST:
        texts, attributes = DAEMON_TEXTS, _ATTRIBUTES_1_3
        restore, first = "restore-last?, ", "(restore-last?, publishing-interval?, (ume-attributes | topics)+)"
        monitors = ("daemon-monitor",)
    topic = f"({restore}ume-attributes*)" if restore else "(ume-attributes)*"
    lines = [
        f"<!ELEMENT ume-store (daemon, stores?{queues})>",
        "<!ATTLIST ume-store version CDATA #REQUIRED>",
        f"<!ELEMENT daemon ({' | '.join((*texts, *monitors))})*>",
    ]
    for name in texts:
        own = f" {attributes[name]}" if name in attributes else ""
        lines += [f"<!ELEMENT {name} (#PCDATA)>", f"<!ATTLIST {name}{own} {_SPACE}>"]
    if queues:
        lines.append("<!ELEMENT queues ANY>")
    lines += [
        "<!ELEMENT stores (store*)>",
        f"<!ELEMENT store {first}>",
        "<!ATTLIST store name CDATA #REQUIRED port CDATA #REQUIRED interface CDATA #IMPLIED>",
        "<!ELEMENT topics (topic+)>",
        f"<!ELEMENT topic {topic}>",
        "<!ATTLIST topic pattern CDATA #REQUIRED type CDATA #IMPLIED>",
        "<!ELEMENT ume-attributes (option+)>",
        "<!ELEMENT option EMPTY>",
        f"<!ATTLIST option type ({kinds}) #IMPLIED name CDATA #REQUIRED value CDATA #REQUIRED>",
    ]
    return "\n".join(lines + (_MONITORED if restore else [])) + "\n"


_OF_DAEMON_MONITOR = ("lbm-config", "publishing-interval", "remote-snapshot-request", "remote-config-changes-request")
_MONITORED = [
    "<!ELEMENT restore-last EMPTY>",
    "<!ATTLIST restore-last behavior CDATA #IMPLIED value CDATA #IMPLIED>",
    f"<!ELEMENT daemon-monitor ({' | '.join(_OF_DAEMON_MONITOR)})*>",
    "<!ATTLIST daemon-monitor topic CDATA #IMPLIED>",
    "<!ELEMENT remote-snapshot-request EMPTY>",
    "<!ATTLIST remote-snapshot-request allow (0 | 1) #IMPLIED>",
    "<!ELEMENT remote-config-changes-request EMPTY>",
    "<!ATTLIST remote-config-changes-request allow (0 | 1) #IMPLIED>",
    "<!ELEMENT publishing-interval (group*)>",
    "<!ELEMENT group EMPTY>",
    "<!ATTLIST group name CDATA #REQUIRED ivl CDATA #REQUIRED>",
]
