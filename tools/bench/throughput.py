"""Throughput: delivered and stable messages, next to the same data path without the protocol."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from tools.bench import pipeline, raw
from tools.bench.goals import Goal, ratio
from tools.bench.roles import Role, Work, run
from tools.bench.scenario import Figures, Options, Scenario

SYNCED: Final = "stable = fdatasync returned at every store"
BASELINE, SYSTEM, EACH, THREE, TRACED = "baseline", "stablecast", "one by one", "three stores", "traced"
MILLISECOND_NS: Final = 1_000_000

DELAYS_MS: Final = (0, 2, 10)
"""Additional duration of flushes: none on this machine's disk, and that of disks in the field."""

DELAYED_FLIGHT: Final = 400_000
DELAYED_RATIO: Final = 0.8
"""Goal: share of the throughput that remains with slow flushes and enough flight."""

LONGER: Final = 16
"""Factor of the number of messages with slow flushes, so that the first and the last flush are a small part."""

DELAYED_SIZE: Final = 100
"""Size of the messages that these numbers refer to (bytes). Larger messages are fewer."""


def measured(roles: Mapping[str, Role], changes: Mapping[str, Any], options: Options, directory: Path) -> Figures:
    """Run the roles once; return rates in 1000/s, and processor times per message in µs."""
    work = Work(options.messages, options.size, options.flight, directory)
    found = run(roles, attrs.evolve(work, **changes))
    figures = {"stable": found["source"]["per_s"] / 1e3, "delivered": found["receiver"]["per_s"] / 1e3}
    figures |= {f"{name}_cpu": role["cpu_us"] for name, role in found.items()}
    stores = [role["cpu_us"] for name, role in found.items() if name.startswith("store")]
    figures["store_messages"] = figures["stable"] * len(stores)
    figures["recovered"] = found["receiver"].get("recovered", 0.0)
    return figures


def traced(options: Options, directory: Path) -> Figures:
    return measured(pipeline.ROLES, {"trace": directory / "trace"}, options, directory)


def throughput(options: Options) -> Scenario:
    """Return the scenario of one source, one receiver and one store."""
    systems = {
        BASELINE: partial(measured, raw.ROLES, {}),
        SYSTEM: partial(measured, pipeline.ROLES, {}),
        EACH: partial(measured, pipeline.EACH_ROLES, {}),
    }
    return Scenario(
        "throughput",
        "one source, one receiver, one disk store; with lists and batches, or one call and one callback per message",
        SYNCED,
        systems | ({TRACED: traced} if options.trace else {}),
        {
            "stable": "stable, 1000/s",
            "delivered": "delivered, 1000/s",
            "source_cpu": "source, CPU µs a message",
            "receiver_cpu": "receiver, CPU µs a message",
            "store_cpu": "store, CPU µs a message",
        },
        [(SYSTEM, BASELINE, "stable"), (SYSTEM, BASELINE, "delivered"), (EACH, BASELINE, "stable")]
        + ([(TRACED, SYSTEM, "stable")] if options.trace else []),
    )


def quorum(_: Options) -> Scenario:
    """Return the scenario of one store and of three."""
    return Scenario(
        "quorum",
        "one disk store, and three stores of which a quorum must sync",
        SYNCED,
        {SYSTEM: partial(measured, pipeline.ROLES, {}), THREE: partial(measured, pipeline.THREE_ROLES, {})},
        {"stable": "stable, 1000/s", "store_messages": "stable times stores, 1000/s"},
        [(THREE, SYSTEM, "store_messages")],
    )


def delayed(delay_ms: int, options: Options, directory: Path) -> Figures:
    """Run with a disk whose flushes take `delay_ms` longer."""
    fewer = max(1, options.size // DELAYED_SIZE)
    longer = attrs.evolve(options, messages=options.messages * LONGER // fewer, flight=DELAYED_FLIGHT // fewer)
    return measured(pipeline.ROLES, {"sync_ns": delay_ms * MILLISECOND_NS}, longer, directory)


def flushes(_: Options) -> Scenario:
    """Return the scenario of a slow disk."""
    quick, *slow = (f"{ms} ms" for ms in DELAYS_MS)
    return Scenario(
        "flushes",
        f"every flush of the disk takes this much longer; the flight is {DELAYED_FLIGHT:,} at {DELAYED_SIZE} B",
        SYNCED,
        {f"{ms} ms": partial(delayed, ms) for ms in DELAYS_MS},
        {"stable": "stable, 1000/s"},
        [(name, quick, "stable") for name in slow],
        [Goal(f"stable, {name} / {quick}", ratio(name, quick, "stable"), DELAYED_RATIO, least=True) for name in slow],
    )
