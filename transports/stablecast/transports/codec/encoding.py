"""Conversion of core messages to LBMC control messages: the headers of each message (spec/wire.md shows the table)."""

from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Any

import attrs

from stablecast.core.protocol import messages as core
from stablecast.core.protocol.generations import NONE
from stablecast.core.protocol.history import fold
from stablecast.core.protocol.stored_contents import StoredAnswer, StoredQuestion
from stablecast.transports.codec import places, stored_contents
from stablecast.transports.codec.domains import split_domain
from stablecast.transports.codec.extended_options import (
    FOUNDING,
    encode_generations,
    encode_lives,
    encode_memory,
    encode_pace,
    encode_permitted,
)
from stablecast.transports.codec.identity import INSTANCE, control, split
from stablecast.transports.wire import common_messages
from stablecast.transports.wire import headers as h

CAPABILITIES = h.Capability.QUORUM_CONSENSUS | h.Capability.CLIENT_LIFETIME


def encode(message: core.Message) -> bytes:
    whole = _SHAPED.get(type(message))
    return control(*_ENCODERS[type(message)](message)) if whole is None else whole(message)


def _host_port(address: core.Address) -> tuple[str, int]:
    host, _, port = split_domain(address)[1].rpartition(":")
    return host, int(port)


def _origin(address: core.Address) -> tuple[h.Header, ...]:
    """Name the domain of the address that answers go to, which has no place beside it; none if it has no number."""
    domain, _ = split_domain(address)
    return (h.OriginatingDomain(domain=domain),) if domain else ()


def _marker(role: core.Role, generation: int) -> int:
    return generation | (h.Preg.SOURCE if role is core.Role.SOURCE else 0)


def _otid(m: core.Register) -> bytes:
    session, index = split(m.incarnation)
    names = places.context_names(INSTANCE.pack(m.context))
    return places.otid(places.transport_of(split_domain(m.transport)[1], session), index, *names)


# Encoders: one for each core message.


def _preg(m: core.Register | core.Deregister, flags: int) -> h.Preg:
    session, index = split(m.incarnation)
    host, port = _host_port(m.reply_to)
    return h.Preg(
        flags=flags,
        marker=_marker(m.role, m.generation),
        reg_id=m.reg_id,
        transport_idx=session,
        topic_idx=index,
        src_reg_id=m.source_reg_id,
        resp_port=port,
        resp_ip=host,
    )


def _encode_register(m: core.Register) -> tuple[h.Header, ...]:
    flags = h.Preg.RECEIVER_PACED if m.pace is not core.Pace.SOURCE else 0
    found: list[h.Header] = [
        _preg(m, flags | (h.Preg.PROXY_SOURCE if m.election else 0)),
        h.StoreId(flags=m.store_index),
        h.Capability(flags=CAPABILITIES),
        h.TopicName(topic=m.topic),
        h.ClientLifetime(activity_tmo=m.activity_timeout_ms, lifetime=m.state_lifetime_ms),
        h.CtxInst(ctxinst=INSTANCE.pack(m.context)),
    ]
    if m.session_id:
        found.append(h.UmeSessionId(sid=m.session_id))
    if m.transport:
        found.append(h.Otid(otid=_otid(m)))
    if m.wants_proxy:
        found.append(h.ProxySource(flags=h.ProxySource.ENABLE))
    if m.election:
        found += _encode_election(m.election)
    return (
        *found,
        *_origin(m.reply_to),
        *encode_lives(m.term, m.lives_term, ()),
        *encode_generations(m.known_generation),
        *encode_pace(m.pace, m.wishes),
    )


def _encode_election(token: core.ElectionToken) -> tuple[h.Header, ...]:
    """Encode the token, and the life that the proxy replaces, if known. The record has no other use here."""
    thrown = h.ElectionToken(store_index=token.store_index, token=token.value)
    if not token.life:
        return (thrown,)
    session, index = split(token.life)
    nowhere = str(IPv4Address(0))
    record = h.ProxyElection(
        source_ip=nowhere, store_ip=nowhere, transport_idx=session, topic_idx=index, source_port=0, store_port=0
    )
    return (thrown, record)


def _encode_deregister(m: core.Deregister) -> tuple[h.Header, ...]:
    return (_preg(m, h.Preg.DEREGISTER), h.StoreId(flags=m.store_index), *_origin(m.reply_to))


def _preg_resp(
    m: core.Registered | core.Refused | core.Deregistered, code: int, low: int = 0, high: int = 0
) -> h.PregResp:
    session, index = split(m.incarnation)
    return h.PregResp(
        code=code,
        marker=_marker(m.role, m.generation),
        reg_id=m.reg_id,
        transport_idx=session,
        topic_idx=index,
        low_seqnum=low,
        high_seqnum=high,
    )


def _encode_registered(m: core.Registered) -> tuple[h.Header, ...]:
    code = h.PregResp.OLD_CLIENT if m.old else 0
    code |= h.PregResp.NO_ACKS if m.no_cache else 0
    code |= h.PregResp.RECEIVER_PACED if m.pace is not core.Pace.SOURCE else 0
    return (
        _preg_resp(m, code, m.low, m.high),
        h.StoreId(flags=m.store_index),
        h.Capability(flags=CAPABILITIES),
        h.ClientLifetime(activity_tmo=m.activity_timeout_ms, lifetime=m.state_lifetime_ms),
        *encode_lives(m.term, m.lives_term, m.lives),
        *encode_memory(m.memory, m.known),
        *encode_generations(m.store_generation, m.peers),
        *encode_pace(m.pace, core.Wishes()),
    )


def _encode_refused(m: core.Refused) -> tuple[h.Header, ...]:
    refused = (_preg_resp(m, h.PregResp.ERROR | m.reason), h.StoreId(flags=m.store_index))
    held = (h.ClientLifetime(activity_tmo=m.held_ms, lifetime=0),) if m.held_ms else ()
    return (*refused, *held, *(() if m.permitted is None else encode_permitted(m.pace, m.permitted)))


def _encode_deregistered(m: core.Deregistered) -> tuple[h.Header, ...]:
    return (_preg_resp(m, h.PregResp.DEREGISTER, high=m.number), h.StoreId(flags=m.store_index))


def _stable(m: core.StableAck) -> bytes:
    session, index = split(m.incarnation)
    return common_messages.STABLE.pack(
        h.Ack.NACK if m.nack else 0, session, index, 0, m.last, m.store_index, 0, m.first, m.last
    )


def _consumed(m: core.ConsumptionAck) -> bytes:
    session, index = split(m.incarnation)
    values = m.flags, session, m.source_reg_id, m.receiver_reg_id, m.number, 0, 0, index
    if m.first == core.FROM_THE_START:
        return (
            common_messages.CONSUMED_BY.pack(*values, 0, m.session_id)
            if m.session_id
            else common_messages.CONSUMED.pack(*values)
        )
    return common_messages.CONSUMED_RANGE.pack(*values, 0, m.first, m.number, 0, m.session_id)


def _encode_receiver_alive(m: core.ReceiverAlive) -> tuple[h.Header, ...]:
    return (
        h.ReceiverKeepalive(rcv_regid=m.receiver_reg_id, session_id=m.session_id, ctxinst=INSTANCE.pack(m.context)),
        h.CtxInstD(ctxinst=INSTANCE.pack(m.incarnation)),
    )


def _encode_retransmit_request(m: core.RetransmitRequest) -> tuple[h.Header, ...]:
    session, index = split(m.incarnation)
    host, port = _host_port(m.reply_to)
    request = h.RxReq(
        request_idx=m.request,
        transport_idx=session,
        id_2=m.source_reg_id if m.by is core.Role.RECEIVER else index,
        seqnum=m.first,
        rx_port=port,
        rx_ip=host,
    )
    asked = h.RangedAck(first_seqnum=m.first, last_seqnum=m.last)
    asker = () if m.store_index == core.ANY_STORE else (h.StoreId(flags=m.store_index),)
    origin = _origin(m.reply_to)
    if m.by is core.Role.STORE:
        return (request, asked, *origin)
    return (request, h.TopicIdx(tidx=index), asked, *asker, *origin)


def _alive(m: core.Keepalive) -> bytes:
    session, index = split(m.incarnation)
    values = h.Keepalive.RESPONSE_REQUESTED if m.respond else 0, m.role, session, index, m.reg_id
    return (
        common_messages.ALIVE.pack(*values, m.store_index)
        if m.store_index >= 0
        else common_messages.ALIVE_ANYWHERE.pack(*values)
    )


def _encode_info(m: core.SourceInfo) -> tuple[h.Header, ...]:
    session, index = split(m.incarnation)
    host, port = _host_port(m.request)
    flags = h.Sri.INITIAL_SQN_KNOWN | (h.Sri.ACK_TO_SOURCE if m.confirmations else 0)
    offers = h.TopicSourceExfunc.LATE_JOIN if m.late_join else 0
    offers |= h.TopicSourceExfunc.UME if m.group_sizes else 0
    stores = []
    for entry in m.stores:
        store_host, store_port = _host_port(entry.address)
        stores.append(
            h.StoreExt(
                grp_idx=entry.group,
                store_tcp_port=store_port,
                store_idx=entry.index,
                store_ip_addr=store_host,
                src_reg_id=entry.source_reg_id,
                domain_id=split_domain(entry.address)[0],
                version=entry.version,
            )
        )
    return (
        h.Sri(flags=flags, version=m.version, low_sqn=m.low, high_sqn=m.high),
        h.TcpSid(sid=session),
        h.TopicIdx(tidx=index),
        h.TopicName(topic=m.topic),
        h.TopicSourceExfunc(src_ip=host, src_port=port, functionality_flags=offers),
        *(h.StoreGroup(grp_idx=index, grp_sz=size) for index, size in enumerate(m.group_sizes)),
        *stores,
        *_origin(m.request),
        *encode_lives(m.term, FOUNDING if m.founding else 0, m.lives),
        *encode_generations(NONE, ((one.index, split_domain(one.address)[1], one.generation) for one in m.stores)),
    )


def _encode_info_request(m: core.SourceInfoRequest) -> tuple[h.Header, ...]:
    session, index = split(m.incarnation)
    return (h.SriReq(transport_idx=session, topic_idx=index),)


def _encode_question(m: StoredQuestion) -> tuple[h.Header, ...]:
    return (*_encode_info_request(m), *_origin(m.reply_to), *stored_contents.encode_question(m))


def _encode_answer(m: StoredAnswer) -> tuple[h.Header, ...]:
    return (*_encode_info(attrs.evolve(m, lives=fold(m.lives))), *stored_contents.encode_answer(m))


def _encode_late_join_request(m: core.LateJoinRequest) -> tuple[h.Header, ...]:
    session, index = split(m.incarnation)
    host, port = _host_port(m.reply_to)
    request = h.LjiReq(request_idx=m.request, transport_idx=session, topic_idx=index, req_ip=host, req_port=port)
    return (request, *_origin(m.reply_to))


def _encode_late_join_info(m: core.LateJoinInfo) -> tuple[h.Header, ...]:
    return (
        h.LjInfo(low_seqnum=m.low, high_seqnum=m.high, qidx=m.request),
        h.CtxInstD(ctxinst=INSTANCE.pack(m.incarnation)),
        *(() if m.store_index == core.ANY_STORE else (h.StoreId(flags=m.store_index),)),
    )


_ENCODERS: dict[type[core.Message], Callable[[Any], tuple[h.Header, ...]]] = {
    core.Register: _encode_register,
    core.Registered: _encode_registered,
    core.Refused: _encode_refused,
    core.Deregister: _encode_deregister,
    core.Deregistered: _encode_deregistered,
    core.ReceiverAlive: _encode_receiver_alive,
    core.RetransmitRequest: _encode_retransmit_request,
    core.SourceInfo: _encode_info,
    core.SourceInfoRequest: _encode_info_request,
    StoredQuestion: _encode_question,
    StoredAnswer: _encode_answer,
    core.LateJoinRequest: _encode_late_join_request,
    core.LateJoinInfo: _encode_late_join_info,
}

_SHAPED: dict[type[core.Message], Callable[[Any], bytes]] = {
    core.StableAck: _stable,
    core.ConsumptionAck: _consumed,
    core.Keepalive: _alive,
}
"""The messages that are encoded in one step."""
