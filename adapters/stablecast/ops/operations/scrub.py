"""Verify every checksum of a directory and decode every block, for `stablecast store scrub`."""

from pathlib import Path
from typing import Any

import attrs

from stablecast.ops.operations.directory_contents import read
from stablecast.text import plural


def scrub(directory: Path) -> dict[str, Any]:
    """Return a report; `clean` is False if something is damaged. Raises like `directory_contents.read`."""
    found = read(directory, thorough=True)
    return {
        "directory": str(directory),
        "clean": not found.damages,
        "segments": len(found.segments),
        "records": dict(found.records),
        "messages": found.messages,
        "bytes": found.checked,
        "torn_bytes": found.torn,
        "damages": [attrs.asdict(damage) for damage in found.damages],
        "lost": [{"source": source, "first": first, "last": last} for source, first, last in found.lost],
        "set_aside": found.set_aside,
    }


def sentences(report: dict[str, Any]) -> list[str]:
    records = ", ".join(f"{count} {kind}" for kind, count in sorted(report["records"].items())) or "none"
    segments = plural(report["segments"], "segment")
    lines = [f"{report['directory']}: {report['bytes']:,} bytes of records in {segments} pass ({records})"]
    if report["torn_bytes"]:
        lines.append(f"the newest segment ends in {report['torn_bytes']} unfinished bytes; no endpoint relies on them")
    lines += [
        f"damaged: {one['file']}, bytes {one['start']}..{one['stop']}: {one['text']}" for one in report["damages"]
    ]
    lines += [f"source {one['source']}: messages {one['first']}..{one['last']} are damaged" for one in report["lost"]]
    lines += [f"set aside earlier: {name}" for name in report["set_aside"]]
    if not report["clean"]:
        lines.append("receivers can recover damaged messages from another store; check the disk")
    return lines
