"""One short line for each message, effect and event of a story."""

from enum import IntEnum, IntFlag
from typing import Any

import attrs

from stablecast.core.protocol import effects as fx
from stablecast.core.protocol import events as ev
from stablecast.core.protocol import messages as ms


def effect_line(effect: Any) -> str | None:
    """Return the line of an effect of a node, or None if a story leaves the effect out."""
    match effect:
        case fx.Send():
            text = message(effect.message)
            return None if text is None else f"-> {effect.to}: {text}"
        case fx.Broadcast():
            return f"-> everybody: {message(effect.message)}"
        case fx.Notify():
            return event(effect.event)
        case fx.Deliver():
            last = effect.first + effect.count - 1
            how = " by OTR" if effect.otr else " recovered" if effect.recovered else ""
            return f"delivers {span(effect.first, last)}{how}"
        case fx.Resend():
            what = "sends again" if effect.proactive else "retransmits"
            return f"-> {effect.to}: {what} {span(effect.first, effect.last)}"
        case fx.Release():
            return f"releases its copies below {effect.number}"
        case fx.AskLow():
            return f"asks where to start: newest {effect.high}, low {effect.low} ({effect.low_by_maximum} by maximum)"
        case _:
            return _store_effect_line(effect)


def _store_effect_line(effect: Any) -> str | None:
    match effect:
        case fx.SendStored():
            return f"-> {effect.to}: retransmits {span(effect.first, effect.last)}"
        case fx.PersistMessages():
            return f"writes {span(effect.first, effect.first + effect.count - 1)}"
        case fx.CacheMessages():
            return f"keeps {span(effect.first, effect.first + effect.count - 1)} in memory"
        case fx.PersistCached():
            return f"writes {span(effect.first, effect.last)} from memory"
        case fx.Uncache():
            return f"drops what is below {effect.number} from memory"
        case fx.Reclaim():
            return f"lets go of everything below {effect.number}"
        case fx.Cut():
            return f"cuts back to {effect.number}: what is behind is an older life's"
        case fx.Forget():
            return f"forgets {effect.role.name.lower()} {effect.reg_id}"
        case fx.StartProxy():
            return f"stands in for source {effect.source_reg_id}, token {effect.election.value % 1000:03}"
        case fx.StopProxy():
            return f"ends its proxy of source {effect.source_reg_id}"
        case _:
            return None


def message(what: ms.Message) -> str | None:
    """Return the text of a message between endpoints, or None for a keepalive."""
    match what:
        case ms.Register():
            return f"registers as {_who(what)}"
        case ms.Registered():
            old = ", known" if what.old else ""
            return f"grants RegID {what.reg_id}: {_held(what.low, what.high)}{old}"
        case ms.Refused():
            return f"refuses: {what.reason.text}"
        case ms.Deregister():
            return f"deregisters RegID {what.reg_id}"
        case ms.Deregistered():
            return f"has forgotten RegID {what.reg_id}"
        case ms.StableAck():
            return f"{span(what.first, what.last)} {'lost here' if what.nack else 'stored'}"
        case ms.ConsumptionAck():
            return f"consumed up to {what.number}"
        case ms.RetransmitRequest():
            return f"asks for {span(what.first, what.last)}"
        case ms.SourceInfo():
            stores = ", ".join(f"{entry.index} (version {entry.version})" for entry in what.stores)
            return f"SRI, version {what.version}: from {what.low}, stores {stores or 'none'}"
        case ms.SourceInfoRequest():
            return "asks for the SRI"
        case ms.LateJoinRequest():
            return "asks what can be had"
        case ms.LateJoinInfo():
            whose = "can send" if what.store_index == ms.ANY_STORE else "has nothing of that, but"
            return f"{whose} {_held(what.low, what.high)}"
        case ms.ReceiverAlive():
            return "is alive"
        case _:
            return None


def event(what: ev.Event) -> str:
    """Return the name and the fields of an event for the application."""
    fields = attrs.asdict(what, recurse=False)
    parts = []
    if "first" in fields:
        parts.append(span(fields.pop("first"), fields.pop("last")))
    for name, value in fields.items():
        if name in ("store", "source_reg_id"):
            continue
        match value:
            case IntFlag():
                shown = "|".join(flag.name or "" for flag in value) or "-"
            case IntEnum():
                shown = value.name
            case _:
                shown = str(value)
        parts.append(shown if name == "text" else f"{name} {shown}")
    return f"* {type(what).__name__}: {', '.join(parts)}" if parts else f"* {type(what).__name__}"


def span(first: int, last: int) -> str:
    """Return a range of numbers as `3..8`, or `3`."""
    return str(first) if first == last else f"{first}..{last}"


def _held(low: int, high: int) -> str:
    return "nothing held" if (high - low + 1) % (1 << 32) == 0 else span(low, high)


def _who(request: ms.Register) -> str:
    kind = "a proxy" if request.election else f"a {request.role.name.lower()}"
    names = [f"RegID {request.reg_id}"] if request.reg_id else []
    names += [f"session {request.session_id}"] if request.session_id else []
    return f"{kind} ({', '.join(names) or 'any RegID'})"
