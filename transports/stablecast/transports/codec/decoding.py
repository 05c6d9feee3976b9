"""Conversion of LBMC control messages to core messages, the inverse of `encoding`. Other messages raise WireError."""

from collections.abc import Callable
from typing import Any

import attrs

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.generations import NONE
from stablecast.core.protocol.history import unfold
from stablecast.core.protocol.stored_contents import StoredAnswer
from stablecast.transports.codec import places, stored_contents
from stablecast.transports.codec.domains import join_domain
from stablecast.transports.codec.extended_options import (
    FOUNDING,
    decode_generations,
    decode_lives,
    decode_memory,
    decode_pace,
    decode_permitted,
)
from stablecast.transports.codec.identity import INSTANCE, find, join, need
from stablecast.transports.wire import common_messages, lbmc
from stablecast.transports.wire import headers as h
from stablecast.transports.wire.errors import WireError

ACK_FLAGS = int(core.AckFlag.EXPLICIT | core.AckFlag.USER_REG_ID | core.AckFlag.ARRIVAL_ORDER)
"""The flags of an acknowledgement that the core uses."""
_ROLES = {int(role): role for role in core.Role}


def decode(message: lbmc.Message) -> core.Message:
    """Return the core message in a control message. Raises WireError for any other."""
    if isinstance(message, common_messages.ShapedMessage):
        return _SHAPED[message.size](message.values)
    if message.kind != lbmc.MessageKind.CONTROL:
        raise WireError(f"a message of kind {message.kind} is not a control message")
    for header in message.headers:
        decoder = _DECODERS.get(type(header))
        if decoder is not None:
            return decoder(header, message)
    raise WireError("a control message has no header that identifies it")


def _origin(message: lbmc.Message) -> int:
    """Return the domain of the address that answers go to; 0 if it is the sender's own."""
    header = find(message, h.OriginatingDomain)
    return 0 if header is None else header.domain


def _address(message: lbmc.Message, host: str, port: int) -> core.Address:
    return join_domain(_origin(message), f"{host}:{port}")


def _role(marker: int) -> core.Role:
    return core.Role.SOURCE if marker & h.Preg.SOURCE else core.Role.RECEIVER


# Decoders: one for each header that identifies a message.


def _decode_preg(header: h.Preg, message: lbmc.Message) -> core.Message:
    index = _store_index(message)
    generation = header.marker & h.Preg.MARKER_MASK
    incarnation = join(header.transport_idx, header.topic_idx)
    reply_to = _address(message, header.resp_ip, header.resp_port)
    role = _role(header.marker)
    if header.flags & h.Preg.DEREGISTER:
        return core.Deregister(role, index, generation, header.reg_id, incarnation, header.src_reg_id, reply_to)
    lifetime = need(message, h.ClientLifetime)
    session = find(message, h.UmeSessionId)
    otid = find(message, h.Otid)
    context = find(message, h.CtxInst)
    proxy = find(message, h.ProxySource)
    pace, wishes = decode_pace(message, bool(header.flags & h.Preg.RECEIVER_PACED))
    term, _, lives_term = decode_lives(message)
    known_generation, _ = decode_generations(message)
    return core.Register(
        role=role,
        store_index=index,
        generation=generation,
        reg_id=header.reg_id,
        incarnation=incarnation,
        source_reg_id=header.src_reg_id,
        topic=need(message, h.TopicName).topic,
        session_id=0 if session is None else session.sid,
        reply_to=reply_to,
        transport="" if otid is None else join_domain(_origin(message), _transport(otid.otid)),
        activity_timeout_ms=lifetime.activity_tmo,
        state_lifetime_ms=lifetime.lifetime,
        context=0 if context is None else INSTANCE.unpack(context.ctxinst)[0],
        pace=pace,
        wishes=wishes,
        wants_proxy=proxy is not None and bool(proxy.flags & h.ProxySource.ENABLE),
        election=_election(message) if header.flags & h.Preg.PROXY_SOURCE else None,
        term=term,
        lives_term=lives_term,
        known_generation=known_generation,
    )


def _election(message: lbmc.Message) -> core.ElectionToken:
    token = need(message, h.ElectionToken)
    record = find(message, h.ProxyElection)
    life = 0 if record is None else join(record.transport_idx, record.topic_idx)
    return core.ElectionToken(token.token, token.store_index, life)


def _decode_preg_resp(header: h.PregResp, message: lbmc.Message) -> core.Message:
    role = _role(header.marker)
    generation = header.marker & h.PregResp.MARKER_MASK
    incarnation = join(header.transport_idx, header.topic_idx)
    index = _store_index(message)
    if header.code & h.PregResp.ERROR:
        held = find(message, h.ClientLifetime)
        held_ms = 0 if held is None else held.activity_tmo
        names = (role, index, generation, header.reg_id, incarnation)
        return core.Refused(*names, _reason(header.code), held_ms, *decode_permitted(message))
    if header.code & h.PregResp.DEREGISTER:
        return core.Deregistered(role, index, generation, header.reg_id, incarnation, header.high_seqnum)
    lifetime = need(message, h.ClientLifetime)
    term, lives, lives_term = decode_lives(message)
    memory, known = decode_memory(message)
    store_generation, peers = decode_generations(message)
    pace, _ = decode_pace(message, bool(header.code & h.PregResp.RECEIVER_PACED))
    return core.Registered(
        role=role,
        store_index=index,
        generation=generation,
        reg_id=header.reg_id,
        incarnation=incarnation,
        old=bool(header.code & h.PregResp.OLD_CLIENT),
        low=header.low_seqnum,
        high=header.high_seqnum,
        activity_timeout_ms=lifetime.activity_tmo,
        state_lifetime_ms=lifetime.lifetime,
        term=term,
        lives=lives,
        lives_term=lives_term,
        no_cache=bool(header.code & h.PregResp.NO_ACKS),
        pace=pace,
        memory=memory,
        known=known,
        store_generation=store_generation,
        peers=peers,
    )


def _reason(code: int) -> core.Refusal:
    try:
        return core.Refusal(code & h.PregResp.REASON_MASK)
    except ValueError as error:
        raise WireError(f"unknown refusal: {error}") from None


def _decode_ack(header: h.Ack, message: lbmc.Message) -> core.Message:
    if header.type == h.Ack.STABLE:
        acked = find(message, h.RangedAck)
        first, last = (header.seqnum, header.seqnum) if acked is None else (acked.first_seqnum, acked.last_seqnum)
        index = need(message, h.StoreId).flags
        return _stable((header.flags, header.transport_idx, header.id_2, 0, 0, index, 0, first, last))
    if header.type != h.Ack.CDELV:
        raise WireError(f"an acknowledgement of unknown type {header.type}")
    topic, session = need(message, h.TopicIdx).tidx, find(message, h.UmeSessionId)
    told = 0 if session is None else session.sid
    names = header.transport_idx, header.id_2, header.rcv_reg_id
    acked = find(message, h.RangedAck)
    if acked is None:
        return _consumed((header.flags, *names, header.seqnum, 0, 0, topic, 0, told))
    return _consumed_range(
        (header.flags, *names, header.seqnum, 0, 0, topic, 0, acked.first_seqnum, acked.last_seqnum, 0, told)
    )


def _stable(values: tuple[int, ...]) -> core.Message:
    """Decode the values of `common_messages.STABLE`."""
    flags, transport, topic, _, _, store, _, first, last = values
    return core.StableAck(store & h.StoreId.ID_MASK, join(transport, topic), first, last, bool(flags & h.Ack.NACK))


def _consumed(values: tuple[int, ...]) -> core.Message:
    """Decode the values of `common_messages.CONSUMED_BY`, or of `CONSUMED`, which has no session."""
    flags, transport, source, receiver, number, _, _, topic, *session = values
    told = core.AckFlag(flags & ACK_FLAGS)
    return core.ConsumptionAck(join(transport, topic), source, receiver, number, told, session[-1] if session else 0)


def _consumed_range(values: tuple[int, ...]) -> core.Message:
    """Decode the values of `common_messages.CONSUMED_RANGE`."""
    flags, transport, source, receiver, _, _, _, topic, _, first, last, _, session = values
    told = core.AckFlag(flags & ACK_FLAGS)
    return core.ConsumptionAck(join(transport, topic), source, receiver, last, told, session, first)


def _decode_receiver_alive(header: h.ReceiverKeepalive, message: lbmc.Message) -> core.Message:
    incarnation = INSTANCE.unpack(need(message, h.CtxInstD).ctxinst)[0]
    context = INSTANCE.unpack(header.ctxinst)[0]
    return core.ReceiverAlive(incarnation, header.rcv_regid, header.session_id, context)


def _decode_rxreq(header: h.RxReq, message: lbmc.Message) -> core.Message:
    topic = find(message, h.TopicIdx)
    asked = find(message, h.RangedAck)
    return core.RetransmitRequest(
        core.Role.STORE if topic is None else core.Role.RECEIVER,
        join(header.transport_idx, header.id_2 if topic is None else topic.tidx),
        0 if topic is None else header.id_2,
        header.request_idx,
        header.seqnum if asked is None else asked.first_seqnum,
        header.seqnum if asked is None else asked.last_seqnum,
        _address(message, header.rx_ip, header.rx_port),
        core.ANY_STORE if topic is None else _store_or_any(message),
    )


def _decode_keepalive(header: h.Keepalive, message: lbmc.Message) -> core.Message:
    store = find(message, h.StoreId)
    values = header.flags, header.type, header.transport_idx, header.topic_idx, header.reg_id
    return _alive(values if store is None else (*values, store.flags))


def _alive(values: tuple[int, ...]) -> core.Message:
    """Decode the values of `common_messages.ALIVE`, or of `ALIVE_ANYWHERE`, which names no store."""
    flags, kind, transport, topic, reg_id, *store = values
    role = _ROLES.get(kind)
    if role is None:
        raise WireError(f"a keepalive of unknown type: {kind}")
    index = store[0] & h.StoreId.ID_MASK if store else core.ANY_STORE
    return core.Keepalive(role, join(transport, topic), reg_id, bool(flags & h.Keepalive.RESPONSE_REQUESTED), index)


def _decode_sri(header: h.Sri, message: lbmc.Message) -> core.Message:
    source = need(message, h.TopicSourceExfunc)
    term, lives, found = decode_lives(message)
    entries = [entry for entry in message.headers if isinstance(entry, h.StoreExt)]
    _, known = decode_generations(message)
    if known and len(known) != len(entries):
        raise WireError(f"{len(known)} generations for {len(entries)} stores")
    generations = [generation for _, _, generation in known] or [NONE] * len(entries)
    stores = tuple(
        core.StoreEntry(
            entry.store_idx,
            entry.grp_idx,
            join_domain(entry.domain_id, f"{entry.store_ip_addr}:{entry.store_tcp_port}"),
            entry.src_reg_id,
            entry.version,
            generation,
        )
        for entry, generation in zip(entries, generations, strict=True)
    )
    info = core.SourceInfo(
        join(need(message, h.TcpSid).sid, need(message, h.TopicIdx).tidx),
        need(message, h.TopicName).topic,
        header.version,
        header.low_sqn,
        header.high_sqn,
        _address(message, source.src_ip, source.src_port),
        _group_sizes(message),
        bool(header.flags & h.Sri.ACK_TO_SOURCE),
        stores,
        term,
        lives,
        bool(source.functionality_flags & h.TopicSourceExfunc.LATE_JOIN),
        bool(found & FOUNDING),
    )
    contents = stored_contents.decode_answer(message)
    if contents is None:
        return info
    about = attrs.asdict(info, recurse=False) | {"lives": tuple(unfold(info.lives, contents["reach"]))}
    return StoredAnswer(**about, **contents)


def _group_sizes(message: lbmc.Message) -> tuple[int, ...]:
    groups = [header for header in message.headers if isinstance(header, h.StoreGroup)]
    if [group.grp_idx for group in groups] != list(range(len(groups))):
        raise WireError("the groups of a source are not in the order of their indices")
    return tuple(group.grp_sz for group in groups)


def _decode_sri_req(header: h.SriReq, message: lbmc.Message) -> core.Message:
    incarnation = join(header.transport_idx, header.topic_idx)
    question = stored_contents.decode_question(message, incarnation)
    if question is None:
        return core.SourceInfoRequest(incarnation)
    return attrs.evolve(question, reply_to=join_domain(_origin(message), question.reply_to))


def _decode_lji_req(header: h.LjiReq, message: lbmc.Message) -> core.Message:
    incarnation = join(header.transport_idx, header.topic_idx)
    return core.LateJoinRequest(incarnation, header.request_idx, _address(message, header.req_ip, header.req_port))


def _decode_lj_info(header: h.LjInfo, message: lbmc.Message) -> core.Message:
    incarnation = INSTANCE.unpack(need(message, h.CtxInstD).ctxinst)[0]
    return core.LateJoinInfo(incarnation, header.qidx, header.low_seqnum, header.high_seqnum, _store_or_any(message))


def _store_or_any(message: lbmc.Message) -> int:
    store = find(message, h.StoreId)
    return core.ANY_STORE if store is None else store.flags & h.StoreId.ID_MASK


def _store_index(message: lbmc.Message) -> int:
    return need(message, h.StoreId).flags & h.StoreId.ID_MASK


def _transport(otid: bytes) -> core.Address:
    transport = places.joinable(places.of_otid(otid))
    if transport is None:
        raise WireError(f"a source on transport {otid[0]:#x}: receivers cannot join it")
    return places.place_of(transport)


_DECODERS: dict[type[h.Header], Callable[[Any, lbmc.Message], core.Message]] = {
    h.Preg: _decode_preg,
    h.PregResp: _decode_preg_resp,
    h.Ack: _decode_ack,
    h.ReceiverKeepalive: _decode_receiver_alive,
    h.RxReq: _decode_rxreq,
    h.Keepalive: _decode_keepalive,
    h.Sri: _decode_sri,
    h.SriReq: _decode_sri_req,
    h.LjiReq: _decode_lji_req,
    h.LjInfo: _decode_lj_info,
}

_SHAPED: dict[int, Callable[[tuple[int, ...]], core.Message]] = {
    common_messages.STABLE.size: _stable,
    common_messages.CONSUMED.size: _consumed,
    common_messages.CONSUMED_BY.size: _consumed,
    common_messages.CONSUMED_RANGE.size: _consumed_range,
    common_messages.ALIVE.size: _alive,
    common_messages.ALIVE_ANYWHERE.size: _alive,
}
