"""The options of the format `stablecast-messages`; an unknown one is refused, with the nearest known name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from stablecast.client.range_bounds import EARLIEST, Bound, parse_bound
from stablecast.config.topic_patterns import expression
from stablecast.core.errors import StablecastError
from stablecast.core.protocol.messages import Pace
from stablecast.core.protocol.settings import PatternType
from stablecast.runtime import machine
from stablecast.runtime.interfaces import choose, facing
from stablecast.text.json_text import from_json
from stablecast.text.spark_table import known_options, listed, local_path

FAIL = "fail"
SKIP = "skip"

READ_OPTIONS = (
    "topic", "path", "topicPattern", "new", "stores", "start", "end", "sources", "missing", "patience", "quorum",
    "interface", "partitionMessages", "maxRowsPerBatch", "maxBytesPerBatch", "session", "pace", "archive",
)  # fmt: skip
WRITE_OPTIONS = ("topic", "path", "stores", "sink", "batch", "key", "interface", "patience")

PACES: Final = {"receivers": Pace.RECEIVERS, "source": Pace.SOURCE}
"""The pace of the stores' repositories, by the value of the option."""

PARTITION_MESSAGES = 100_000
"""Messages of one partition at most."""

MAX_BOUNDS: Final = 64
"""Differing bounds of single sources in one option: each is a question to the stores."""

REGISTRATION_SECONDS: Final = 60.0
"""Time to wait for a registration. Stores may hold the session of a killed process until its port refuses them."""

PATIENCE_SECONDS = 10.0
"""Time to wait for stores that are away."""


class MessageOptionError(StablecastError):
    """An option of the format is wrong. The text names it and what it may be."""


@attrs.frozen
class ReadTerms:
    """The options of a query that reads.

    Attributes:
        topics: The topics by name, each once.
        pattern: An expression that matches names of further topics; None: none.
        new: Topics that no store knows are empty; otherwise they are an error.
        start, end: Bounds as users write them, see `parse_bound`.
        starts, ends: Bounds of single sources, by their name in an offset.
        sources: Session ids; None: all.
        fail_on_missing: Missing messages end the query; otherwise they are logged.
        max_rows, max_bytes: Of one batch of a stream; None: no limit.
        session: The session id under which stores remember what the query has processed; None: they do not.
        archive: The folder that has the older messages, None: there is none.
        pace: The pace of the repositories, for a query with a session.
    """

    topics: tuple[str, ...]
    stores: tuple[str, ...]
    start: str
    end: str
    sources: tuple[int, ...] | None
    fail_on_missing: bool
    patience: float
    quorum: int | None
    interface: str
    partition_messages: int
    max_rows: int | None
    max_bytes: int | None
    session: int | None = None
    pace: Pace = Pace.RECEIVERS
    archive: Path | None = None
    pattern: str | None = None
    new: bool = False
    starts: Mapping[str, str] = attrs.field(factory=dict)
    ends: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def topic(self) -> str:
        return ", ".join(self.topics) if self.topics else str(self.pattern)

    @property
    def several(self) -> bool:
        """Return whether sources of several topics may be read, so that their names begin with the topic."""
        return self.pattern is not None or len(self.topics) > 1

    @classmethod
    def of(cls, given: Mapping[str, str], *, new: bool = False) -> "ReadTerms":
        """Return the options of a query; `new` is the default of that option.

        Raises MessageOptionError, BoundError for a bound, PatternError for a pattern.
        """
        options = known_options(given, READ_OPTIONS, MessageOptionError)
        missing = options.get("missing", FAIL)
        if missing not in (FAIL, SKIP):
            raise MessageOptionError(f"the option missing is {FAIL} or {SKIP}, not {missing!r}")
        sources, pace = options.get("sources", ""), options.get("pace", "receivers")
        if pace not in PACES:
            raise MessageOptionError(f"the option pace is {' or '.join(PACES)}, not {pace!r}")
        if "pace" in options and "session" not in options:
            raise MessageOptionError("the option pace needs a session, under which the query acknowledges")
        pattern = expression(options["topicPattern"], PatternType.PCRE) if "topicPattern" in options else None
        (start, starts), (end, ends) = _bounds(options, "start", EARLIEST), _bounds(options, "end", "")
        terms = cls(
            _topics_of(options, pattern),
            stores_of(options),
            start,
            end,
            tuple(_number("sources", one) for one in sources.split(",")) if sources else None,
            missing == FAIL,
            _seconds(options),
            _optional(options, "quorum"),
            options.get("interface", ""),
            _optional(options, "partitionMessages") or PARTITION_MESSAGES,
            _optional(options, "maxRowsPerBatch"),
            _optional(options, "maxBytesPerBatch"),
            _optional(options, "session"),
            PACES[pace],
            _folder(options),
            pattern,
            _flag(options, "new", default=new),
            starts,
            ends,
        )
        terms.bounds()
        if terms.several and (terms.session is not None or terms.archive is not None):
            raise MessageOptionError("the options session and archive are for one topic: make a query for each topic")
        if terms.archive is not None and (starts or ends):
            raise MessageOptionError("with an archive, the options start and end are one bound for all sources")
        return terms

    def bounds(self) -> tuple[Bound, Bound]:
        """Return where the query begins and ends. Raises BoundError."""
        now = machine.clock.wall_ns()
        for one in (*self.starts.values(), *self.ends.values()):
            parse_bound(one, now)
        return parse_bound(self.start, now), parse_bound(self.end, now)


@attrs.frozen
class WriteTerms:
    """The options of a query that writes: `sink` names it over restarts, `batch` numbers the tables of one sink.

    `key` names the columns that tell rows apart; without any, their content does.
    """

    topic: str
    stores: tuple[str, ...]
    sink: str
    interface: str
    patience: float
    batch: int = 0
    key: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "WriteTerms":
        """Return the options of a query. Raises MessageOptionError."""
        options = known_options(given, WRITE_OPTIONS, MessageOptionError)
        return cls(
            topic_of(options),
            stores_of(options),
            options.get("sink", ""),
            options.get("interface", ""),
            _seconds(options),
            _number("batch", options.get("batch", "0")),
            tuple(name.strip() for name in options.get("key", "").split(",") if name.strip()),
        )


def topic_of(options: Mapping[str, str]) -> str:
    """Return the topic. Raises MessageOptionError."""
    topic = options.get("topic") or options.get("path")
    if not topic:
        raise MessageOptionError('name the topic: .load("TOPIC"), or the option "topic"')
    return topic


def _topics_of(options: Mapping[str, str], pattern: str | None) -> tuple[str, ...]:
    """Return the topics of a query that reads: separated by commas, or a JSON list, as Spark gives it.

    Raises MessageOptionError if there is neither a topic nor a pattern.
    """
    named = options.get("topic") or options.get("path") or ""
    if pattern is not None and not named:
        return ()
    topic_of(options)
    topics = tuple(dict.fromkeys(name.strip() for name in listed(named)))
    if not all(topics):
        raise MessageOptionError(f"the option topic has an empty name: {named!r}")
    return topics


def _bounds(options: Mapping[str, str], name: str, default: str) -> tuple[str, dict[str, str]]:
    """Return a bound, and those of single sources. Raises MessageOptionError."""
    text = options.get(name, default)
    if not text.lstrip().startswith("{"):
        return text, {}
    try:
        found = from_json(text)
    except ValueError as error:
        raise MessageOptionError(
            f"the option {name} is a bound, or a JSON object of sources and bounds: {error}"
        ) from None
    bounds = {str(source): str(bound) for source, bound in found.items()}
    if len(set(bounds.values())) > MAX_BOUNDS:
        raise MessageOptionError(f"the option {name} has at most {MAX_BOUNDS} differing bounds")
    return bounds.pop("*", default), bounds


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise MessageOptionError(f"the option {name} is true or false, not {text!r}")
    return text == "true"


def stores_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the stores. Raises MessageOptionError."""
    stores = tuple(place.strip() for place in options.get("stores", "").split(",") if place.strip())
    if not stores:
        raise MessageOptionError('name the stores of the topic: .option("stores", "host:port,host:port,host:port")')
    return stores


def interface_to(stores: tuple[str, ...], interface: str) -> str:
    """Return the address of this host that stores connect to: the chosen one, or the one that faces them."""
    return choose(interface) if interface else facing(stores)


def _folder(options: Mapping[str, str]) -> Path | None:
    """Return the archive, which may be a `file:` URI. Raises MessageOptionError."""
    name = options.get("archive", "")
    return local_path(name, "archive", MessageOptionError) if name else None


def _optional(options: Mapping[str, str], name: str) -> int | None:
    found = _number(name, options[name]) if name in options else None
    if found == 0:
        raise MessageOptionError(f"the option {name} is a number from 1 on, not 0")
    return found


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise MessageOptionError(f"the option {name} is a number, not {text!r}")
    return int(text)


def _seconds(options: Mapping[str, str]) -> float:
    text = options.get("patience", str(PATIENCE_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise MessageOptionError(f"the option patience is a number of seconds, not {text!r}")
    return seconds
