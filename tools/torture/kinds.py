"""Kinds of plans. Each function drafts the plans of one kind, and its docstring describes the faults."""

import random
from collections.abc import Callable, Mapping

from tools.torture.plan import LEAST_DISK_BYTES, LONG_SECONDS, STARVED_SECONDS, STORES, Draft, Plan

CROWD = 3
"""Receivers that come to a program without descriptors: more than `DESCRIPTORS_LEFT` of `processes`."""
ROAM_SECONDS = 8.0
"""Time after which a host may get its former address again: an endpoint has noticed the new one before."""
MOST_BYTES = 40_000_000
"""Bytes that a source of large messages sends. A repository may hold more, so it deletes no old messages."""


def crashes(draft: Draft) -> None:
    """Programs are killed and restarted, sometimes all stores at once."""
    draft.usual()
    for _ in range(draft.rng.randint(3, 6)):
        draft.during(draft.moment(6.0), draft.rng.uniform(0.1, 3.0), ("kill", "start"), draft.anybody())
    if draft.rng.random() < 0.5:
        at = draft.moment(5.0)
        for store in STORES:
            draft.during(at, draft.rng.uniform(0.2, 1.5), ("kill", "start"), store)


def pauses(draft: Draft) -> None:
    """Processes are stopped, mostly for longer than every timeout."""
    draft.usual()
    for _ in range(draft.rng.randint(1, 3)):
        seconds = draft.rng.choice((0.5, LONG_SECONDS, LONG_SECONDS, 6.0))
        draft.during(draft.moment(), seconds, ("stop", "continue"), draft.anybody())
    if draft.rng.random() < 0.5:
        draft.during(draft.moment(6.0), 0.5, ("kill", "start"), draft.anybody())


def partitions(draft: Draft) -> None:
    """Hosts are cut off: silently or with errors, in one direction or both, from all hosts or from one."""
    draft.usual()
    for _ in range(draft.rng.randint(1, 3)):
        one = draft.anybody()
        other = draft.rng.choice([name for name in (*STORES, *draft.sources) if name != one])
        seconds = draft.rng.choice((0.7, 2.0, LONG_SECONDS))
        do = draft.rng.choice(("cut", "cut", "unplug", "mute", "mute", "route"))
        undo = {"cut": "join", "unplug": "plug", "mute": "unmute", "route": "unroute"}[do]
        more = {} if do in {"cut", "unplug"} else {"other": other}
        if do == "route":
            more["how"] = draft.rng.choice(("blackhole", "unreachable", "prohibit"))
        draft.during(draft.moment(), seconds, (do, undo), one, **more)
    if draft.rng.random() < 0.6:
        draft.during(draft.moment(6.0), draft.rng.uniform(0.1, 2.0), ("kill", "start"), draft.anybody())


def dialling(draft: Draft) -> None:
    """A program starts while it is cut off, and makes no progress for longer than the limit of a connection attempt.

    The program blocks its event loop, or is stopped, while the network returns and the kernel completes connections.
    """
    draft.usual()
    who = draft.rng.choice(("source", "source", "receiver1"))
    job = draft.sources.get(who) or draft.receivers[who]
    job["uvloop"] = draft.rng.random() < 0.8
    if draft.rng.random() < 0.7:
        job["busy"] = STARVED_SECONDS
    at = draft.moment(2.0)
    draft.during(at, 0.2, ("kill", "start"), who)
    draft.during(at + 0.1, 0.5, ("cut", "join"), who)
    if "busy" not in job:
        draft.during(at + 0.2 + draft.rng.uniform(0.0, 0.3), STARVED_SECONDS, ("stop", "continue"), who)
    draft.add(at + STARVED_SECONDS + 1.0, "none", who)


def disks(draft: Draft) -> None:
    """The disk of one store becomes full, fails, or loses unsynced writes. Then stores are killed."""
    draft.usual()
    for index in range(len(STORES)):
        draft.disks[index] = draft.rng.choice(("ext4", "tmpfs", "plain"))
    index = draft.rng.randrange(len(STORES))
    store = STORES[index]
    fault = draft.rng.choice(("fill", "fill", "fail", "power"))
    if fault != "fill":
        draft.disks[index] = "ext4"
    elif draft.disks[index] == "plain":
        draft.disks[index] = "tmpfs"
    at = draft.moment(2.0)
    draft.add(at, fault, store)
    if fault == "fill":
        draft.add(at + 5.0, "free", store)
    else:
        draft.add(at + draft.rng.uniform(0.0, 3.0), "kill", store)
        draft.add(at + 5.0, "repair", store)
    draft.add(at + 5.1, "start", store)
    for _ in range(draft.rng.randint(0, 2)):
        draft.during(at + 5.5 + draft.rng.random(), 0.5, ("kill", "start"), draft.anybody())


def powercuts(draft: Draft) -> None:
    """All machines lose their power at once, and return with the synced writes only."""
    draft.usual()
    draft.disks[:] = ["ext4"] * 3
    at = draft.moment(3.0)
    for store in STORES:
        draft.add(at, "power", store)
    for who in (*STORES, *draft.sources):
        draft.add(at + 0.1, "kill", who)
    for store in STORES:
        draft.add(at + 0.2, "repair", store)
    for who in (*STORES, *draft.sources):
        draft.add(at + 0.3 + draft.rng.random(), "start", who)


def directories(draft: Draft) -> None:
    """The directory of one store is damaged while the store is stopped. The other two stay intact."""
    draft.usual()
    store = draft.rng.choice(STORES)
    how = draft.rng.choice(("flip", "truncate", "zero", "remove", "empty", "restore"))
    at = draft.moment(2.0) + 1.0
    if how == "restore":
        draft.during(at - 0.9, 0.3, ("kill", "start"), store)
        draft.add(at - 0.8, "copy", store)
    draft.add(at, "kill", store)
    draft.add(at + 0.2, "damage", store, how=how, seed=draft.rng.randrange(1 << 30))
    draft.add(at + draft.rng.uniform(0.3, 2.0), "start", store)
    for _ in range(draft.rng.randint(0, 2)):
        who = draft.rng.choice([*draft.sources, *draft.receivers])
        draft.during(at + draft.rng.uniform(0.2, 3.0), draft.rng.uniform(0.1, 2.0), ("kill", "start"), who)


def limits(draft: Draft) -> None:
    """One program runs out of descriptors or memory while other programs restart, and more receivers come."""
    draft.usual()
    who = draft.rng.choice((draft.anybody(), "source"))
    at = draft.moment(2.0)
    how = draft.rng.choice(("descriptors", "descriptors", "memory"))
    draft.during(at, LONG_SECONDS, ("limit", "unlimit"), who, how=how)
    for _ in range(2):
        other = draft.rng.choice([name for name in (*STORES, *draft.sources, *draft.receivers) if name != who])
        draft.during(at + draft.rng.uniform(0.1, 2.0), draft.rng.uniform(0.1, 1.0), ("kill", "start"), other)
    if how == "descriptors":
        for index in range(3, 3 + CROWD):
            draft.receiver(f"receiver{index}", mode="plain")
            draft.later.append(f"receiver{index}")
            draft.add(at + draft.rng.uniform(0.1, 2.0), "start", f"receiver{index}")


def backlog(draft: Draft) -> None:
    """A slow consumer has a backlog while its source is killed and returns."""
    draft.source(burst=20, size=100)
    mode = draft.rng.choice(("slow", "slow", "blocking"))
    draft.receiver("receiver1", mode=mode, delay=draft.rng.choice((0.005, 0.01, 0.02)))
    draft.receiver("receiver2", mode="plain")
    at = draft.moment(1.5) + 1.0
    draft.during(at, draft.rng.choice((0.1, 0.1, 1.0)), ("kill", "start"), "source")
    if draft.rng.random() < 0.5:
        draft.during(at + 2.0, 0.3, ("kill", "start"), draft.anybody())


def twins(draft: Draft) -> None:
    """One program makes two sources of one topic with one session id."""
    draft.usual()
    draft.source(handles=2, again=False)
    if draft.rng.random() < 0.5:
        draft.during(draft.moment(), 0.5, ("kill", "start"), draft.anybody())


def rivals(draft: Draft) -> None:
    """Two processes claim one session id. The first is cut off or stopped, and returns after its successor started."""
    draft.usual()
    draft.source("successor", again=False, uvloop=True)
    draft.later.append("successor")
    at = draft.moment(2.0)
    what = draft.rng.choice((("cut", "join"), ("stop", "continue"), ("mute", "unmute"), ("none", "none")))
    seconds = draft.rng.uniform(2.0, 5.0)
    if what[0] == "mute":
        for store in draft.rng.sample(STORES, draft.rng.randint(1, 3)):
            draft.during(at, seconds, what, "source", other=store)
    elif what[0] != "none":
        draft.during(at, seconds, what, "source")
    draft.add(at + 0.5, "start", "successor")
    if draft.rng.random() < 0.5:
        draft.add(at + draft.rng.uniform(2.0, 4.0), "kill", "successor")
    if draft.rng.random() < 0.5:
        draft.during(at + 1.0, draft.rng.uniform(0.5, 2.0), ("cut", "join"), draft.rng.choice(STORES))


def lives(draft: Draft) -> None:
    """Short lives reach different stores before they die or are cut off. The first life may return."""
    draft.usual()
    draft.source("successor", again=False)
    draft.later.append("successor")
    away = draft.rng.sample(STORES, 2)
    draft.during(0.8, 5.0, ("mute", "unmute"), "source", other=away[0])
    draft.during(1.0, 5.2, ("mute", "unmute"), away[0], other="source")
    draft.during(1.5, 3.5, ("cut", "join"), "source")
    draft.during(1.7, 3.0, ("cut", "join"), away[1])
    draft.add(1.8, "start", "successor")
    draft.add(draft.rng.uniform(3.0, 5.5), "kill", "successor")
    if draft.rng.random() < 0.5:
        draft.during(5.0, 1.5, ("cut", "join"), away[0])


def rates(draft: Draft) -> None:
    """A source over a reliable transport with a rate limit sends on three topics. Receivers may lose datagrams."""
    transport = draft.rng.choice(("lbtrm", "lbtrm", "lbtru"))
    limit = draft.rng.choice((100_000, 200_000, 1_000_000, 10_000_000))
    topics = ["orders", "trades", "quotes"]
    draft.source(
        topics=topics,
        size=500 if limit < 10_000_000 else 60_000,
        burst=10,
        messages=60 if limit < 1_000_000 else 120,
        options={"transport": transport, f"transport_{transport}_data_rate_limit": limit},
    )
    quick = {f"transport_{transport}_activity_timeout": 2000, "transport": transport}
    loss = {f"transport_{transport}_loss_rate": 3} if draft.rng.random() < 0.5 else {}
    draft.receiver("receiver1", topics=topics, mode="plain", options={**quick, **loss})
    draft.receiver("receiver2", topics=topics, options=quick)
    if draft.rng.random() < 0.3:
        draft.during(draft.moment(), 0.5, ("kill", "start"), draft.rng.choice((*STORES, "receiver1")))


def daemon(draft: Draft) -> None:
    """One daemon runs three stores, each with its own file system. One file system is full for a while."""
    draft.usual()
    draft.daemon = True
    draft.disks[:] = ["tmpfs", draft.rng.choice(("tmpfs", "ext4")), "tmpfs"]
    store = draft.rng.choice(STORES)
    draft.during(draft.moment(2.0), 5.0, ("fill", "free"), store)
    if draft.rng.random() < 0.3:
        draft.during(draft.moment(2.0) + 6.0, 0.5, ("kill", "start"), "daemon")


def pairs(draft: Draft) -> None:
    """Two sources of one topic have different session ids. One of them is restarted."""
    draft.usual()
    draft.source("second", session=12, owner="second")
    for _ in range(2):
        draft.during(draft.moment(5.0), draft.rng.uniform(0.2, 2.0), ("kill", "start"), draft.anybody())


def flood(draft: Draft) -> None:
    """A source sends thousands of messages a second, some large, while stores and receivers fall behind."""
    draft.source(burst=draft.rng.choice((50, 100)), size=draft.rng.choice((20, 100)))
    if draft.rng.random() < 0.3:
        size = draft.rng.choice((10_000, 70_000, 300_000))
        draft.source(burst=3, size=size, messages=MOST_BYTES // size)
    draft.receiver("receiver1")
    draft.receiver("receiver2", mode="plain")
    for _ in range(draft.rng.randint(2, 4)):
        what = draft.rng.choice((("kill", "start"), ("stop", "continue"), ("cut", "join")))
        draft.during(draft.moment(), draft.rng.uniform(0.2, LONG_SECONDS), what, draft.anybody())


def mixed(draft: Draft) -> None:
    """All kinds of faults happen at once, also in the topic resolution."""
    draft.usual()
    rng = draft.rng
    draft.sources["source"]["size"] = rng.choice((60, 1000, 70_000))
    draft.service = rng.random() < 0.5
    if rng.random() < 0.3:
        draft.source("second", session=12, owner="second")
    if rng.random() < 0.5:
        draft.during(draft.moment(), rng.uniform(0.2, 3.0), ("kill", "start"), "relay")
    for _ in range(rng.randint(3, 7)):
        one = draft.anybody()
        other = rng.choice([name for name in (*STORES, *draft.sources) if name != one])
        what = rng.choice(
            (("kill", "start"), ("kill", "start"), ("stop", "continue"), ("cut", "join"), ("mute", "unmute"))
        )
        more = {"other": other} if what[0] == "mute" else {}
        draft.during(draft.moment(6.0), rng.choice((0.2, 1.0, 2.0, LONG_SECONDS)), what, one, **more)
    if rng.random() < 0.3:
        at = draft.moment(6.0)
        store = rng.choice(STORES)
        draft.add(at, "kill", store)
        how = rng.choice(("flip", "truncate", "zero", "remove", "empty"))
        draft.add(at + 0.2, "damage", store, how=how, seed=rng.randrange(1 << 30))
        draft.add(at + 0.5, "start", store)


def stumbles(draft: Draft) -> None:
    """A consumer that blocks its event loop is killed again and again. No other program is."""
    draft.source(burst=10, size=100)
    draft.receiver("receiver1", mode="blocking", delay=draft.rng.choice((0.005, 0.01, 0.05)))
    draft.receiver("receiver2", mode="plain")
    draft.prompt = True
    for turn in range(3):
        at = 5.0 * turn + 4.0 + draft.rng.random()
        draft.during(at, 0.2, ("kill", "start"), "receiver1")


def claims(draft: Draft) -> None:
    """Two processes claim one receiver's session id. The first is cut off, stopped or alive when the second starts."""
    draft.usual()
    draft.receiver("claimant", session=21, owner="receiver1", mode="plain")
    draft.later.append("claimant")
    at = draft.moment(2.0)
    what = draft.rng.choice((("cut", "join"), ("stop", "continue"), ("none", "none")))
    if what[0] != "none":
        draft.during(at, draft.rng.uniform(2.0, 5.0), what, "receiver1")
    draft.add(at + 0.5, "start", "claimant")
    draft.add(at + draft.rng.uniform(2.0, 6.0), "kill", draft.rng.choice(("claimant", "receiver1")))


def _keeping_few(draft: Draft) -> None:
    """Let the stores keep less than a source sends in a second, and the source almost nothing."""
    transport = draft.rng.choice(("tcp", "tcp", "lbtrm", "lbtru"))
    options = {
        "transport": transport,
        "ume_confirmed_delivery_notification": 1,
        "retransmit_retention_size_limit": 300_000,
    }
    quick: dict[str, str | int] = {"transport": transport}
    if transport != "tcp":
        options[f"transport_{transport}_transmission_window_size"] = 200_000
        quick[f"transport_{transport}_activity_timeout"] = 2000
    draft.source(burst=50, size=1000, options=options)
    draft.receiver("receiver1", options=quick)
    draft.receiver("receiver2", mode="plain", options=quick)
    draft.store_options = (f"repository-disk-file-size-limit={LEAST_DISK_BYTES}",)
    draft.kept = LEAST_DISK_BYTES // 2000


def overtaken(draft: Draft) -> None:
    """A receiver or a store is away, or stopped, for longer than the limits of the stores and the source keep."""
    _keeping_few(draft)
    what = draft.rng.choice((("kill", "start"), ("kill", "start"), ("stop", "continue"), ("cut", "join")))
    at = draft.moment(2.0)
    draft.during(at, LONG_SECONDS, what, draft.rng.choice(["receiver1", "receiver1", *STORES, *draft.sources]))
    if draft.rng.random() < 0.5:
        draft.during(at + draft.rng.uniform(0.0, LONG_SECONDS), 2.0, ("stop", "continue"), draft.rng.choice(STORES))


def laggards(draft: Draft) -> None:
    """The network of one store is late while receivers return to what a limit may have let go."""
    draft.rng.choice((Draft.usual, _keeping_few))(draft)
    draft.during(0.2, 10.0, ("lag", "still"), draft.rng.choice(STORES), how=str(draft.rng.choice((100, 300, 800))))
    for _ in range(draft.rng.randint(1, 3)):
        who = draft.rng.choice(["receiver1", "receiver2", *draft.sources])
        draft.during(draft.moment(5.0), draft.rng.uniform(0.2, LONG_SECONDS), ("kill", "start"), who)


def refills(draft: Draft) -> None:
    """A receiver returns while a store with a new disk is refilled, and another store is away."""
    draft.source(burst=10, size=1000)
    draft.receiver("receiver1")
    draft.receiver("receiver2", mode="plain")
    draft.store_options = (f"refill-byte-rate={draft.rng.choice((100_000, 400_000))}",)
    store, away, _ = draft.rng.sample(STORES, 3)
    draft.during(1.0, 5.0 + draft.rng.random(), ("kill", "start"), "receiver1")
    draft.add(4.0, "kill", store)
    draft.add(4.1, "damage", store, how="empty", seed=draft.rng.randrange(1 << 30))
    draft.add(4.3, "start", store)
    if draft.rng.random() < 0.7:
        what = draft.rng.choice((("stop", "continue"), ("cut", "join"), ("kill", "start")))
        draft.during(5.0 + draft.rng.random(), draft.rng.uniform(1.0, LONG_SECONDS), what, away)


def removals(draft: Draft) -> None:
    """The directory of one running store is emptied, moved away for a while, or replaced by a copy."""
    draft.usual()
    store = draft.rng.choice(STORES)
    at = draft.moment(2.0)
    how = draft.rng.choice(("emptied", "moved", "copied"))
    draft.during(at, LONG_SECONDS, ("remove", "restored"), store, how=how)
    draft.add(at + LONG_SECONDS + 0.1, "start", store)
    for _ in range(draft.rng.randint(0, 2)):
        who = draft.rng.choice([*draft.sources, *draft.receivers])
        draft.during(at + LONG_SECONDS + 1.0 + draft.rng.random(), 0.5, ("kill", "start"), who)


def inodes(draft: Draft) -> None:
    """A store with a new disk starts while the disk has room, but no inode."""
    draft.usual()
    index = draft.rng.randrange(len(STORES))
    draft.disks[index] = draft.rng.choice(("ext4", "tmpfs"))
    store, at = STORES[index], draft.moment(2.0)
    draft.add(at, "kill", store)
    draft.add(at + 0.1, "damage", store, how="empty", seed=0)
    draft.during(at + 0.2, 6.0, ("fill", "free"), store, how="inodes")
    draft.add(at + draft.rng.uniform(0.3, 2.0), "start", store)
    draft.add(at + 6.3, "start", store)


def silences(draft: Draft) -> None:
    """One store is stopped for longer than every timeout, while a source or a receiver returns."""
    draft.usual()
    at = draft.moment(2.0)
    draft.during(at, draft.rng.choice((LONG_SECONDS, 8.0)), ("stop", "continue"), draft.rng.choice(STORES))
    who = draft.rng.choice([*draft.sources, *draft.sources, *draft.receivers])
    draft.during(at + draft.rng.uniform(-0.2, 1.0), draft.rng.uniform(0.1, 1.0), ("kill", "start"), who)


def addresses(draft: Draft) -> None:
    """The host of a source or a receiver that was told no address gets another one, for a while or for good."""
    draft.usual()
    who = draft.rng.choice(["source", "source", "receiver1"])
    job = draft.sources.get(who) or draft.receivers[who]
    job["roams"] = True
    at = draft.moment(2.0)
    draft.add(at, "readdress", who)
    if draft.rng.random() < 0.5:
        draft.add(at + ROAM_SECONDS, "readdress", who)
    other = draft.rng.choice([name for name in (*STORES, *draft.sources, *draft.receivers) if name != who])
    draft.during(at + draft.rng.uniform(0.1, 4.0), draft.rng.uniform(0.1, 1.0), ("kill", "start"), other)


def forks(draft: Draft) -> None:
    """A source or a receiver forks a child that uses what it inherited, and keeps it while somebody is killed."""
    draft.usual()
    who, other = draft.rng.choice([*draft.sources, *draft.sources, *draft.receivers]), draft.anybody()
    job = draft.sources.get(who) or draft.receivers[who]
    job["forks"] = draft.rng.choice((0.0, LONG_SECONDS, LONG_SECONDS, 20.0))
    at = draft.moment(2.0)
    draft.add(at, "fork", who)
    if draft.rng.random() < 0.8:
        killed = draft.rng.choice((who, who, other))
        draft.during(at + draft.rng.uniform(0.1, 2.0), draft.rng.uniform(0.1, 2.0), ("kill", "start"), killed)


def repositories(draft: Draft) -> None:
    """The limits of the stores keep a few messages, of sizes up to a third of a limit. Anybody may be away."""
    _keeping_few(draft)
    size = draft.rng.choice((100, 1000, 20_000, 60_000))
    job = draft.sources["source"]
    job["size"], job["burst"] = size, max(1, 50_000 // size)
    limits = [f"repository-disk-file-size-limit={LEAST_DISK_BYTES}"]
    if draft.rng.random() < 0.5:
        limits += [f"repository-size-limit={LEAST_DISK_BYTES}", f"repository-size-threshold={LEAST_DISK_BYTES // 2}"]
    draft.store_options = tuple(limits)
    draft.kept = LEAST_DISK_BYTES // (2 * max(size, 1000))
    for _ in range(draft.rng.randint(1, 3)):
        what = draft.rng.choice((("kill", "start"), ("stop", "continue"), ("cut", "join")))
        draft.during(draft.moment(), draft.rng.uniform(0.2, LONG_SECONDS), what, draft.anybody())


KINDS: Mapping[str, Callable[[Draft], None]] = {
    make.__name__: make
    for make in (
        crashes, pauses, partitions, dialling, disks, powercuts, directories, limits, backlog, twins, rivals, lives,
        rates, daemon, pairs, stumbles, claims, flood, mixed, overtaken, laggards, refills, removals, inodes, silences,
        repositories, addresses, forks,
    )
}  # fmt: skip


def draw(seed: int, kind: str = "") -> Plan:
    """Return the plan of a seed. Without a kind, consecutive seeds cycle through the kinds."""
    kind = kind or list(KINDS)[seed % len(KINDS)]
    draft = Draft(random.Random(f"{seed} {kind}"))
    KINDS[kind](draft)
    return Plan(
        seed,
        kind,
        tuple(draft.disks),
        draft.sources,
        draft.receivers,
        tuple(sorted(draft.steps, key=lambda step: step.at)),
        draft.daemon,
        tuple(draft.later),
        draft.prompt,
        draft.service,
        store_options=draft.store_options,
        kept=draft.kept,
    )
