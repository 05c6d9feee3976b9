"""State `tla/Registration` as a first-order transition system, with an inductive invariant for any number of clients.

Time is an order, and nothing is known of spans but this: `horizon` is when the lease of a request sent now would end.
It never decreases. A request carries the horizon of its sending (`asked`), and a store keeps a client until the
horizon of the moment in which it received the request (`held`). So no lease outlasts what the store keeps, whatever
the spans, the delays and the number of clients are.

The variables are those of the model. Queues are sets here. `probe_old` and `alive_old` are questions and answers from
before the newest request: a connection keeps its order, so the newest request and its grant come after them.
"""

from typing import Final

from stablecast.lab.proof.language import BOOL, Symbol
from stablecast.lab.proof.system import System, SystemText

LETTERS: Final = {"i": "Client", "j": "Client", "k": "Client", "t": "Time", "h": "Time"}

_BOTH: Final = "idle waiting registered renewing dead leased probed fresh_ask late_ask probe probe_old fresh_grant"
_FLAGS: Final = (*_BOTH.split(), "late_grant", "alive", "alive_old", "wrote", "wrote_late")
_TIMES: Final = ("lease", "asked", "probe_until")


def _symbols() -> dict[str, Symbol]:
    client = ("Client",)
    found = {name: Symbol(name, client) for name in _FLAGS}
    found |= {name: Symbol(name, client, "Time") for name in _TIMES}
    found |= {name: Symbol(name, (), BOOL) for name in ("up", "active", "dirty")}
    found |= {name: Symbol(name, (), "Client") for name in ("holder", "disk")}
    return found | {name: Symbol(name, (), "Time") for name in ("held", "now", "horizon")}


CONSTANTS: Final = {
    "nobody": Symbol("nobody", (), "Client"),
    "start": Symbol("start", (), "Time"),
    "start_horizon": Symbol("start_horizon", (), "Time"),
    "later": Symbol("later", ("Client", "Client")),
    "shared": Symbol("shared", ("Client",)),
}
VARIABLES: Final = _symbols()
AXIOMS: Final = {
    "a lease ends later": "start <= start_horizon",
    "lives of a context share": "all i, j. later(i, j) -> shared(i) & shared(j) & i != nobody & j != nobody",
    "no life is later than itself": "all i. !later(i, i)",
    "later than later": "all i, j, k. later(i, j) & later(j, k) -> later(i, k)",
    "lives of a context are in order": "all i, j, k. later(k, i) & later(k, j) -> i = j | later(i, j) | later(j, i)",
}
BELIEVES: Final = "(registered(i) | renewing(i))"
ASKING: Final = "(waiting(i) | renewing(i))"
FREE: Final = "holder = nobody | holder = i | !active | later(i, holder)"
MINE: Final = "(holder = i | later(holder, i))"
MINE_ON_DISK: Final = "(disk = i | later(disk, i))"


def _on(name: str) -> dict[str, str]:
    return {f"{name}(i1)": f"{name}(i1) | i1 = i"}


def _off(name: str) -> dict[str, str]:
    return {f"{name}(i1)": f"{name}(i1) & i1 != i"}


def _set(name: str, value: str) -> dict[str, str]:
    return {f"{name}(i1)": f"if i1 = i then {value} else {name}(i1)"}


def _older(new: str, old: str) -> dict[str, str]:
    """Make what belongs to the newest request belong to an older one."""
    return {**_off(new), f"{old}(i1)": f"{old}(i1) | (i1 = i & {new}(i1))"}


ANEW: Final = {
    **_older("fresh_ask", "late_ask"),
    **_on("fresh_ask"),
    **_older("fresh_grant", "late_grant"),
    **_older("wrote", "wrote_late"),
    **_older("probe", "probe_old"),
    **_older("alive", "alive_old"),
    **_off("probed"),
    **_set("asked", "horizon"),
}
"""A client begins a new attempt with a request."""
BROKEN: Final = {**_off("registered"), **_on("renewing"), **ANEW}
QUEUES: Final = ("fresh_ask", "late_ask", "probe", "probe_old", "fresh_grant", "late_grant", "alive", "alive_old")
"""Messages under way between a client and the store."""


def _actions(text: SystemText) -> None:
    add = text.transitions
    add["Start"] = ("i", ("idle(i) & i != nobody",), {**_off("idle"), **_on("waiting"), **ANEW})
    _to_store(text)
    _to_client(text)
    _timers(text)
    add["Break"] = ("i", ("registered(i)",), BROKEN)
    kept = {name: f"kept_{name}" for name in QUEUES}
    add["Drop"] = (
        " ".join(["i", *(f"{name}(i)" for name in kept.values())]),
        (),
        {f"{name}(i1)": f"{name}(i1) & (i1 != i | {chosen}(i1))" for name, chosen in kept.items()},
    )
    # Instants that nobody will compare again may be anything.
    add["Forget"] = (
        "i t",
        ("t <= now",),
        {
            "lease(i1)": "if i1 = i & !leased(i) then t else lease(i1)",
            "asked(i1)": "if i1 = i & (asked(i) <= now | (!waiting(i) & !renewing(i))) then t else asked(i1)",
            "probe_until(i1)": "if i1 = i & !probed(i) then t else probe_until(i1)",
            "held": "if holder = nobody | !up then t else held",
        },
    )
    gone = ("waiting", "registered", "renewing", "leased", "probed", "probe")
    add["Die"] = (
        "i",
        ("!idle(i) & !dead(i)",),
        {
            **{head: value for name in gone for head, value in _off(name).items()},
            **_older("alive", "alive_old"),
            **_on("dead"),
        },
    )
    _store(text)


def _to_store(text: SystemText) -> None:
    add = text.transitions
    taken = {"holder": "i", "active": "true", "held": "horizon", "dirty": "true"}
    add["ToStore.ask"] = ("i", ("up", "fresh_ask(i)", FREE), {**taken, **_on("wrote"), **_off("probe_old")})
    add["ToStore.late"] = ("i", ("up", "late_ask(i)", FREE), {**taken, **_on("wrote_late")})
    signed = ("up", "holder = i & active")
    add["ToStore.sign"] = ("i", signed, {"held": "horizon"})
    add["ToStore.probe"] = ("i", (*signed, "probe(i)"), {"held": "horizon", **_on("alive"), **_off("probe")})
    add["ToStore.probe_old"] = ("i", (*signed, "probe_old(i)"), {"held": "horizon", **_on("alive_old")})
    add["ToStore.down"] = ("i", ("!up", "registered(i)"), BROKEN)
    text.lemmas["ToStore.ask"] = text.lemmas["ToStore.late"] = {"NoReturn": "active -> !later(holder, i)"}


def _to_client(text: SystemText) -> None:
    add = text.transitions
    granted = {
        **_on("registered"),
        **_off("waiting"),
        **_off("renewing"),
        **_on("leased"),
        **_set("lease", "asked(i)"),
        **_off("alive_old"),
    }
    add["ToClient.grant"] = ("i", ("fresh_grant(i)", ASKING, "now < asked(i)"), granted)
    add["ToClient.again"] = ("i", ("fresh_grant(i)", ASKING, "asked(i) <= now"), ANEW)
    add["ToClient.refuse"] = ("i", ("renewing(i)",), {**_off("renewing"), **_on("waiting")})
    add["ToClient.alive"] = (
        "i",
        ("registered(i) & alive(i) & probed(i)",),
        {**_set("lease", "probe_until(i)"), **_off("probed"), **_off("alive"), **_off("probe")},
    )
    add["ToClient.gone"] = ("i", ("dead(i)", "up & holder = i", "!shared(i)"), {"active": "false"})


def _timers(text: SystemText) -> None:
    add = text.transitions
    add["ClientTimer.retry"] = ("i", (ASKING,), {**_on("waiting"), **_off("renewing"), **_on("fresh_ask")})
    add["ClientTimer.probe"] = (
        "i",
        ("registered(i) & !probed(i)",),
        {**_on("probed"), **_set("probe_until", "horizon"), **_on("probe")},
    )
    add["ClientTimer.silence"] = ("i", ("registered(i)",), BROKEN)
    over = "leased(i) & lease(i) <= now"
    ended = {**_on("waiting"), **_off("leased")}
    add["ClientTimer.expired"] = ("i", (over, "registered(i)"), {**_off("registered"), **ended, **ANEW})
    add["ClientTimer.lapsed"] = ("i", (over, "renewing(i)"), {**_off("renewing"), **ended})
    add["ClientTimer.idle"] = ("i", (over, "waiting(i)"), _off("leased"))
    # Time passes up to the next lease that ends, not beyond: a timer that is due comes first.
    add["Tick"] = (
        "t h",
        ("now < t", "horizon <= h & t <= h", "all i1. leased(i1) -> t <= lease(i1)"),
        {"now": "t", "horizon": "h"},
    )


def _store(text: SystemText) -> None:
    add = text.transitions
    add["StoreTimer.silent"] = ("", ("up", "held < now"), {"active": "false"})
    add["StoreTimer.over"] = (
        "",
        ("up", "held < now"),
        {"active": "false", "holder": "nobody", "dirty": "true"},
    )
    unwritten = {"dirty": "false", "wrote(i1)": "false", "wrote_late(i1)": "false"}
    add["Sync"] = (
        "",
        ("up", "dirty"),
        {
            **unwritten,
            "disk": "holder",
            "fresh_grant(i1)": "fresh_grant(i1) | (wrote(i1) & holder = i1)",
            "late_grant(i1)": "late_grant(i1) | (wrote_late(i1) & holder = i1)",
        },
    )
    add["Crash"] = ("", ("up",), {**unwritten, "up": "false"})
    held = {"up": "true", "held": "horizon"}
    add["Restart"] = ("", ("!up", "disk != nobody"), {**held, "holder": "disk", "active": "true"})
    add["Restart.empty"] = ("", ("!up", "disk = nobody"), {**held, "holder": "nobody", "active": "false"})


INVARIANTS: Final = {
    "one state": "all i. !(idle(i) & (waiting(i) | registered(i) | renewing(i) | dead(i)))"
    " & !(waiting(i) & (registered(i) | renewing(i) | dead(i)))"
    " & !(registered(i) & (renewing(i) | dead(i))) & !(renewing(i) & dead(i))",
    "nobody is idle": "idle(nobody)",
    "the idle ask nothing": "all i. idle(i) -> !fresh_ask(i) & !late_ask(i) & !fresh_grant(i) & !wrote(i)",
    "a lease sent now ends later": "now <= horizon",
    "asked before now": "all i. asked(i) <= horizon & probe_until(i) <= horizon & lease(i) <= horizon",
    "belief needs a lease": f"all i. {BELIEVES} -> leased(i) & now <= lease(i)",
    "believed on disk": f"all i. {BELIEVES} -> {MINE_ON_DISK}",
    "believed at the store": f"all i. {BELIEVES} & up -> {MINE} & active & lease(i) <= held",
    "granted on disk": f"all i. fresh_grant(i) & {ASKING} & now < asked(i) -> {MINE_ON_DISK}",
    "granted at the store": f"all i. fresh_grant(i) & {ASKING} & now < asked(i) & up ->"
    f" {MINE} & active & asked(i) <= held",
    "written at the store": f"all i. wrote(i) & {ASKING} & now < asked(i) -> up & {MINE} & active & asked(i) <= held",
    "questions of the registered": "all i. !registered(i) -> !probe(i) & !alive(i) & !probed(i)",
    "one question at a time": "all i. registered(i) & !probed(i) -> !probe(i) & !alive(i)",
    "a later answer extends": "all i. registered(i) & probed(i) -> lease(i) <= probe_until(i)",
    "answers follow questions": "all i. registered(i) & alive(i) & up -> probe_until(i) <= held",
    "no older question after a request": "all i. fresh_grant(i) | wrote(i) | registered(i) -> !probe_old(i)",
    "no older answer after a grant": "all i. registered(i) -> !alive_old(i)",
}
PROPERTIES: Final = {
    "OneHolder": "all i, j. (registered(i) | renewing(i)) & (registered(j) | renewing(j)) ->"
    " i = j | later(i, j) | later(j, i)",
    "Kept": f"all i. {BELIEVES} -> {MINE_ON_DISK}",
    "Inside": f"all i. {BELIEVES} & up -> {MINE} & active & lease(i) <= held",
}


def text() -> SystemText:
    told = SystemText("Registration", LETTERS, frozenset({"Time"}), CONSTANTS, VARIABLES, AXIOMS)
    told.initial.update({f"{name}(i1)": "false" for name in _FLAGS})
    told.initial.update({f"{name}(i1)": "start" for name in _TIMES})
    told.initial.update({"idle(i1)": "true", "up": "true", "active": "false", "dirty": "false"})
    told.initial.update({"holder": "nobody", "disk": "nobody", "held": "start"})
    told.initial.update({"now": "start", "horizon": "start_horizon"})
    _actions(told)
    told.invariants.update(INVARIANTS)
    told.consequences.update(PROPERTIES)
    return told


def registration() -> System:
    return text().read()
