"""Names of headers and messages, as dissectors and the tables of the formats write them."""

from stablecast.transports.wire import headers as h
from stablecast.transports.wire import lbmr, lbmr_extended, lbmr_gateway, lbtrm, lbtru, srs

# fmt: off
HEADERS = {
    1: "FRAG", 2: "BATCH", 4: "REQUEST", 5: "TOPICNAME", 6: "APPHDR", 7: "APPHDR_CHAIN", 8: "UMQ_MSGID",
    9: "UMQ_SQD_RCV", 10: "UMQ_RESUB", 11: "OTID", 12: "CTXINSTD", 13: "CTXINSTR", 14: "SRCIDX", 15: "UMQ_ULB_MSG",
    16: "SSF_INIT", 17: "SSF_CREQ", 18: "PREG", 19: "PREG_RESP", 20: "ACK", 21: "RXREQ", 22: "KEEPALIVE",
    23: "STOREID", 24: "RANGED_ACK", 25: "ACK_ID", 26: "CAPABILITY", 27: "PROXY_SRC", 28: "STORE_GROUP", 29: "STORE",
    30: "LJ_INFO", 32: "TSNI", 48: "UMQ_REG", 49: "UMQ_REG_RESP", 50: "UMQ_ACK", 51: "UMQ_RCR", 52: "UMQ_KEEPALIVE",
    53: "UMQ_RXREQ", 54: "UMQ_QMGMT", 55: "UMQ_RESUB_REQ", 56: "UMQ_RESUB_RESP", 57: "TOPIC_INTEREST",
    58: "PATTERN_INTEREST", 59: "ADVERTISEMENT", 60: "UME_CTXINSTS", 61: "STORENAME", 62: "UMQ_ULB_RCR", 63: "UMQ_LF",
    64: "CTXINFO", 65: "PSER", 66: "CTXINST", 67: "DOMAIN", 68: "TNWG_CAPABILITIES", 69: "PATIDX",
    70: "CLIENT_LIFETIME", 71: "UME_SID", 72: "UMQ_IDX_CMD", 73: "UMQ_IDX_CMD_RESP", 74: "ODOMAIN", 75: "STREAM",
    76: "TOPIC_MD_INTEREST", 77: "PATTERN_MD_INTEREST", 78: "LJI_REQ", 79: "TNWG_KA", 80: "RCV_KEEPALIVE",
    81: "UMQ_CMD", 82: "UMQ_CMD_RESP", 83: "SRI_REQ", 84: "STORE_DOMAIN", 85: "SRI", 86: "ROUTE_INFO",
    87: "ROUTE_INFO_NEIGHBOR", 88: "GATEWAY_NAME", 96: "AUTH", 98: "HMAC", 99: "UMQ_SID", 100: "DESTINATION",
    101: "TOPIC_IDX", 103: "TOPIC_SOURCE", 104: "TOPIC_SOURCE_EXFUNC", 105: "STORE_EXT", 106: "ELECTION_TOKEN",
    107: "TCP_SID", 254: "EXTOPT",
}
# fmt: on
"""Every listed code; those of queues (UMQ) have no layout here."""

LBTRM = {lbtrm.Data: "DATA", lbtrm.SessionMessage: "SM", lbtrm.Nak: "NAK", lbtrm.Ncf: "NCF"}
LBTRU = {
    lbtru.Data: "DATA",
    lbtru.SessionMessage: "SM",
    lbtru.Nak: "NAK",
    lbtru.Ncf: "NCF",
    lbtru.Ack: "ACK",
    lbtru.Request: "CREQ",
    lbtru.Reset: "RST",
}
LBMR_BODIES = {
    lbmr.ContextInfo: "CONTEXT_INFO",
    lbmr.ResolutionRequest: "RESOLUTION_REQUEST",
    lbmr_extended.Management: "TOPIC_MANAGEMENT",
    lbmr_extended.Election: "PSER",
    lbmr_gateway.Gateway: "GATEWAY",
    lbmr_extended.DomainRoute: "DOMAIN_ROUTE",
    lbmr_extended.RemoteContexts: "REMOTE_CONTEXTS",
}
TIR_OPTIONS = {5: 8, 6: None, 11: 28, 12: 12}
"""Options of queues in an advertisement, with their size, None for any."""
TIR_TRANSPORTS = {0x04: 10, 0x20: 10, 0x40: 10}
"""Transports of other hardware in an advertisement (shared memory, RDMA, IPC), with the size of their block."""
SRS = {
    srs.RegistrationRequest: "REGISTRATION_REQUEST",
    srs.RegistrationResponse: "REGISTRATION_RESPONSE",
    srs.StreamRequest: "STREAM_REQUEST",
    srs.SourceInfo: "SRC_INFO",
    srs.SourceDelete: "SRC_DELETE",
    srs.ReceiverInfo: "RCV_INFO",
    srs.ReceiverDelete: "RCV_DELETE",
    srs.ReceiverEnd: "RCV_END",
    srs.PatternInfo: "WRCV_INFO",
    srs.PatternDelete: "WRCV_DELETE",
    srs.PatternEnd: "WRCV_END",
    srs.LeaveInfo: "LEAVE_INFO",
    srs.RouteInfo: "ROUTE_INFO",
    srs.RouteEnd: "ROUTE_END",
    srs.DomainInfo: "DOMAIN_INFO",
    srs.NameQuery: "CONTEXT_NAME_QUERY",
    srs.NameInfo: "CONTEXT_NAME_INFO",
    srs.NameEnd: "CONTEXT_NAME_END",
}


def header(record: h.Header) -> str:
    code = record.code if isinstance(record, h.UnknownHeader) else record.CODE
    return HEADERS.get(code, f"header {code}")
