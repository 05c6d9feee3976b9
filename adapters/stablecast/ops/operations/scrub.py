"""`stablecast store scrub`: read every byte of a directory and verify every checksum; and take each block apart."""

from pathlib import Path
from typing import Any

import attrs

from stablecast.ops.operations.directory_contents import read
from stablecast.text import plural


def scrub(directory: Path) -> dict[str, Any]:
    """What is whole and what is not; `clean` says whether all is. Raises like `contents.read`."""
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
        "set_aside": found.set_aside,
    }


def sentences(report: dict[str, Any]) -> list[str]:
    """The same for people."""
    records = ", ".join(f"{count} {kind}" for kind, count in sorted(report["records"].items())) or "none"
    segments = plural(report["segments"], "segment")
    told = [f"{report['directory']}: {report['bytes']:,} bytes of records in {segments} pass ({records})"]
    if report["torn_bytes"]:
        told.append(f"the newest segment ends in {report['torn_bytes']} unfinished bytes; nobody was told about them")
    told += [f"damaged: {one['file']}, bytes {one['start']}..{one['stop']}: {one['text']}" for one in report["damages"]]
    told += [f"set aside earlier: {name}" for name in report["set_aside"]]
    if not report["clean"]:
        told.append("let receivers recover what is damaged from another store, and check the disk")
    return told
