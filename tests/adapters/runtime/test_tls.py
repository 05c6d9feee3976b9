"""TLS with certificates on both sides, on every TCP path."""

import asyncio
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme

from stablecast.client import Context, RegistrationFailed, use_certificates
from stablecast.core.protocol.effects import Join
from stablecast.core.protocol.events import StoreUnresponsive
from stablecast.core.protocol.messages import Deregister, Role, StableAck
from stablecast.resolver.srs.config import SrsConfig
from stablecast.resolver.srs.daemon import SrsDaemon
from stablecast.runtime import tls
from stablecast.runtime.address import parse
from stablecast.runtime.tls import AUTHORITY, CERTIFICATE, DATAGRAMS, KEY, UNPROTECTED, VARIABLE, TlsError
from stablecast.transports import codec
from tests.adapters.store.test_store import serving
from tests.support.network import Events, until


def certified(directory: Path, authority: trustme.CA, **how: Any) -> Path:
    directory.mkdir()
    issued = authority.issue_cert("stablecast.test", **how)
    issued.cert_chain_pems[0].write_to_path(str(directory / CERTIFICATE))
    issued.private_key_pem.write_to_path(str(directory / KEY))
    authority.cert_pem.write_to_path(str(directory / AUTHORITY))
    return directory


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("tls") / "ours", trustme.CA())


async def test_messages_are_stored_and_recovered_over_tls(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(ours))
    async with serving(tmp_path) as store, Context(session_id=1) as context, Context(session_id=2) as other:
        source = await context.source("orders", stores=[store.address])
        await source.send_many([b"x" * 1000] * 50)
        await source.wait_stable_through(49)
        receiver = other.receiver("orders", source=source.config.transport)
        for number in range(50):
            message = await anext(receiver)
            assert (message.sequence_number, message.payload) == (number, b"x" * 1000)
            message.consumed()


@pytest.mark.parametrize("stranger", ["plain", "without a certificate", "of another authority"])
async def test_strangers_are_disconnected_before_they_send_anything(
    stranger: str, ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(ours))
    context = None if stranger == "plain" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if context is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if stranger == "of another authority":
            other = certified(tmp_path / "other", trustme.CA())
            context.load_cert_chain(other / CERTIFICATE, other / KEY)
    (tmp_path / "store").mkdir()
    async with serving(tmp_path / "store") as store:
        host, _, port = store.address.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(b"x" * 100)
            await reader.read()  # Until it is hung up on; an alert may come first.
            writer.close()
        except OSError:
            pass
        assert (len(store._port), store.statistics()["oddities"]) == (0, {})


async def test_a_member_speaks_for_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of one authority have names of their own, and one host has processes with several."""
    authority = trustme.CA()
    monkeypatch.setenv(VARIABLE, str(certified(tmp_path / "ours", authority)))
    member = certified(tmp_path / "member", authority)
    forger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    forger.check_hostname, forger.verify_mode = False, ssl.CERT_NONE
    forger.load_cert_chain(member / CERTIFICATE, member / KEY)
    (tmp_path / "store").mkdir()
    async with serving(tmp_path / "store") as store, Context(session_id=1) as context:
        source = await context.source("orders", stores=[store.address])
        await (await source.send(b"x")).stable()
        life, place = source.config.incarnation, context.request_address
        forged = (
            (place, StableAck(0, life, 0, 0), context.oddities),
            (store.address, Deregister(Role.SOURCE, 0, 0, 1, life, 0, place), store.oddities),
        )
        for port, message, oddities in forged:
            _, writer = await asyncio.open_connection(*parse(port), ssl=forger)
            writer.write(codec.encode(message))
            await until(partial(oddities.__getitem__, f"foreign-{type(message).__name__}"))
            writer.transport.abort()
        assert store.oddities == {"foreign-Deregister": 1}
        assert [client.client.incarnation for client in store.machine.status.clients.values()] == [life]


async def test_a_renewed_certificate_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Listeners use it as well; half a set of files leaves the old ones in use."""
    monkeypatch.setattr(tls, "RELOAD_SECONDS", 0)
    before, after = trustme.CA(), trustme.CA()
    place = certified(tmp_path / "ours", before)
    renewed = certified(tmp_path / "renewed", after)
    monkeypatch.setenv(VARIABLE, str(place))
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname = False
    after.configure_trust(stranger)
    stranger.load_cert_chain(renewed / CERTIFICATE, renewed / KEY)
    (tmp_path / "store").mkdir()
    async with serving(tmp_path / "store") as store:
        for name in (KEY, CERTIFICATE, AUTHORITY):
            (renewed / name).replace(place / name)
            with suppress(ssl.SSLError, ConnectionError):
                _, writer = await asyncio.open_connection(*parse(store.address), ssl=stranger)
                writer.transport.abort()
        _, writer = await asyncio.open_connection(*parse(store.address), ssl=stranger)
        await until(lambda: len(store._port))
        writer.transport.abort()
    told = [record.getMessage() for record in caplog.records]
    assert sum("stay in use" in line for line in told) >= 1
    assert sum("renewed" in line for line in told) >= 1


async def test_a_certificate_that_ends_soon_is_warned_of_once(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    soon = datetime.now(UTC) + timedelta(days=tls.EXPIRY_DAYS - 1)
    monkeypatch.setenv(VARIABLE, str(certified(tmp_path / "ours", authority, not_after=soon)))
    (tmp_path / "store").mkdir()
    async with serving(tmp_path / "store") as store, Context(session_id=1) as context:
        source = await context.source("orders", stores=[store.address])
        await (await source.send(b"x")).stable()
    assert [record.getMessage().count("ends on") for record in caplog.records] == [1]


@pytest.mark.parametrize(("seconds", "warned"), [(-60, 1), (60, 0)])
def test_a_certificate_is_warned_of_within_the_last_days(
    seconds: int, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    end = datetime.now(UTC) + timedelta(days=tls.EXPIRY_DAYS, seconds=seconds)
    tls._warn_of_expiry({"notAfter": f"{end:%b %d %H:%M:%S %Y} GMT"})
    assert len(caplog.records) == warned


@pytest.mark.parametrize("missing", [CERTIFICATE, KEY, AUTHORITY])
def test_a_missing_file_is_named(missing: str, ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ours.iterdir():
        if path.name != missing:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(TlsError, match=f"TLS needs {tmp_path} to hold certificate.pem, key.pem and"):
        tls.server()
    (tmp_path / missing).write_bytes(b"nothing")
    with pytest.raises(TlsError):
        tls.client()


def test_without_the_setting_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert (tls.server(), tls.client(), tls.handshake()) == (None, None, None)


async def test_one_setting_covers_stores_streams_and_the_service(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service disconnects a client without TLS."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(TlsError, match=r"authority\.pem"):
        use_certificates(tmp_path)
    use_certificates(ours)
    service = await SrsDaemon.start(SrsConfig("127.0.0.1", 0), lambda _: None)
    try:
        async with (
            serving(tmp_path) as store,
            Context(session_id=1, resolver_service=[service.address]) as context,
            Context(session_id=2, resolver_service=[service.address]) as other,
        ):
            receiver = other.receiver("orders")
            source = await context.source("orders", stores=[store.address])
            await source.send(b"found")
            assert (await anext(receiver)).payload == b"found"
            host, _, port = service.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"x" * 100)
            with suppress(OSError):
                await reader.read()
            writer.close()
    finally:
        await service.close()


def test_a_process_has_one_setting(ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(ours))
    tls.use(ours)
    with pytest.raises(TlsError, match="use the same directory, or another process"):
        tls.use(certified(tmp_path / "other", trustme.CA()))


@pytest.mark.parametrize("transport", ["LBTRU", "LBTRM"])
async def test_with_tls_nothing_uses_datagrams_unless_the_risk_is_accepted(
    transport: str, ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers could put messages into such a stream."""
    monkeypatch.setenv(VARIABLE, str(ours))
    monkeypatch.setenv(DATAGRAMS, UNPROTECTED)
    options = {"transport": transport}
    async with (
        serving(tmp_path) as store,
        Context(session_id=1) as context,
        Context(session_id=2) as other,
        Context(session_id=3) as second,
    ):
        source = await context.source("orders", stores=[store.address], options=options)
        await source.send(b"seen")
        await source.wait_stable_through(0)
        assert (await anext(other.receiver("orders", source=source.config.transport))).payload == b"seen"
        monkeypatch.delenv(DATAGRAMS)
        with pytest.raises(TlsError, match=DATAGRAMS):
            await context.source("quotes", stores=[store.address], options=options)
        with pytest.raises(TlsError, match=DATAGRAMS):
            await anext(second.receiver("orders", source=source.config.transport))
        # A store that restarts with other variables than its sources must not take their messages either.
        joined = Join(source.config.incarnation + 1, source.config.transport)
        store._arrivals.join(joined)
        assert store.statistics()["oddities"] == {"stream-not-joined": 1}


@pytest.mark.parametrize(
    ("ours_first", "expected"), [(True, "does not accept the certificate of the peer"), (False, "may use TLS")]
)
async def test_a_client_is_told_why_no_store_answers(
    ours_first: bool,
    expected: str,
    ours: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A certificate of another authority, and no TLS at all: the event and the exception name the cause."""
    stranger = certified(tmp_path / "stranger", trustme.CA())
    monkeypatch.setenv(VARIABLE, str(ours))
    events = Events()
    (tmp_path / "store").mkdir()
    async with serving(tmp_path / "store") as store:
        if ours_first:
            monkeypatch.setenv(VARIABLE, str(stranger))
        else:
            monkeypatch.delenv(VARIABLE)
        async with Context(session_id=1) as context:
            options = {"ume_registration_interval": 500, "ume_store_activity_timeout": 500}
            opening = context.source("orders", stores=[store.address], on_event=events, options=options, within=2)
            with pytest.raises(RegistrationFailed, match=expected):
                await opening
    assert any(expected in event.text for event in events.of(StoreUnresponsive))


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", "does not accept the certificate of this process: unknown ca"),
        ("WRONG_VERSION_NUMBER", "does not use TLS"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "shows no certificate"),
    ],
)
def test_a_failed_handshake_has_a_cause_in_words(reason: str, expected: str) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    assert expected in tls.cause(error)
    assert tls.cause(OSError(1, "no TLS error")) == ""


async def test_a_port_counts_and_logs_failed_handshakes(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for the first of a cause, however many there are."""
    monkeypatch.setenv(VARIABLE, str(ours))
    tls.refused.clear()
    async with serving(tmp_path) as store:
        host, port = store.address.split(":")
        for _ in range(3):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"no handshake, but words of another protocol")
            with suppress(ConnectionError):
                await reader.read()
            writer.close()
    assert list(tls.refused.values()) == [3]
    assert sum("TLS" in record.message for record in caplog.records) == 1
