"""What is worth a look at a running store, from its monitor's JSON."""

from collections.abc import Iterable
from typing import Any

from stablecast.ops.monitor import figures
from stablecast.ops.monitor.health import Level


def troubles(store: dict[str, Any], sources: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Level and sentence, the most urgent first; what is said of several in the same words is said once."""
    shared: dict[tuple[str, str], list[str]] = {}
    for source in sources:
        readers = ((f"{source['topic']}, receiver {reader['reg_id']}", reader) for reader in source["receivers"])
        for name, client in ((source["topic"], source), *readers):
            for finding in client["findings"]:
                shared.setdefault((finding["level"], finding["text"]), []).append(name)
    found = [(finding["level"], finding["text"]) for finding in store["findings"]]
    found += [(level, f"{figures.among(names[0], len(names))}: {text}") for (level, text), names in shared.items()]
    return sorted(found, key=lambda one: -Level[one[0]])
