"""Permissions of the monitor."""

import os
import socket

import pytest
from aiohttp.test_utils import make_mocked_request

from stablecast.ops.monitor import access
from stablecast.ops.monitor.access import COOKIE, FREE_GUESSES, HEADERS, Guesses, guard, is_token
from stablecast.ops.monitor.settings import MonitorSettings, Permission
from stablecast.runtime import machine
from tests.adapters.ops.monitor.site_client import HTML, showing
from tests.adapters.ops.monitor.staged_store import busy

TOKEN = "open-sesame"


async def test_looking_needs_nothing_on_loopback() -> None:
    async with showing(busy()) as shown, shown.client.get("/") as answer:
        assert answer.status == 200
        assert all(answer.headers[name] == value for name, value in HEADERS.items())


@pytest.mark.rows("P-807")
@pytest.mark.parametrize(
    "path", ["/stores/0/reset", "/api/stores/0/evict", "/api/stores/0/drain", "/api/stores/0/scrub"]
)
async def test_read_only_refuses_every_change(path: str) -> None:
    """Read-only refuses POST."""
    async with showing(busy()) as shown, shown.client.post(path) as answer:
        assert (answer.status, await answer.text()) == (403, "this monitor is read-only\n")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.1:5", "[fe80::1]:4"])
async def test_another_hosts_name_is_not_answered_on_loopback(host: str) -> None:
    async with showing(busy()) as shown, shown.client.get("/", headers={"Host": host}) as answer:
        assert answer.status == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:15304", "127.0.0.1", "[::1]:15304", "[::1]"])
async def test_the_hosts_own_names_are(host: str) -> None:
    async with showing(busy()) as shown, shown.client.get("/", headers={"Host": host}) as answer:
        assert answer.status == 200


async def test_beyond_loopback_any_name_is() -> None:
    async def handler(_: object) -> str:
        return "seen"

    check = guard(MonitorSettings("10.0.0.1"))
    request = make_mocked_request("GET", "/", headers={"Host": "monitor.example"})
    assert await check(request, handler) == "seen"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_another_sites_page_changes_nothing(headers: dict[str, str]) -> None:
    staged = busy()
    async with (
        showing(staged, permission=Permission.READ_WRITE) as shown,
        shown.client.post("/api/stores/0/drain", headers=headers) as answer,
    ):
        assert answer.status == 403
    assert not staged.draining


async def test_its_own_page_does() -> None:
    staged = busy()
    async with showing(staged, permission=Permission.READ_WRITE) as shown:
        origin = str(shown.client.make_url("/")).rstrip("/")
        for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": origin}):
            async with shown.client.post("/api/stores/0/drain", headers=headers) as answer:
                assert answer.status == 200


@pytest.mark.parametrize("token", ["", TOKEN])
async def test_another_user_of_the_host_changes_nothing_without_the_token(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.network, "is_of_owner", lambda *_: False)
    staged, headers = busy(), {"Authorization": f"Bearer {token}"} if token else {}
    async with showing(staged, permission=Permission.READ_WRITE, token=token) as shown:
        async with shown.client.post("/api/stores/0/drain", headers=headers) as answer:
            assert answer.status == (200 if token else 403)
        async with shown.client.get("/api/stores", headers=headers) as answer:
            assert answer.status == 200
    assert staged.draining is bool(token)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_user_of_a_connection_is_known(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, 0), family=family)
    with listening, socket.create_connection(listening.getsockname()[:2]) as client:
        local, remote = client.getpeername()[:2], client.getsockname()[:2]
        assert machine.network.is_of_owner(local, remote)
        if os.geteuid() == 0:  # Root's sockets are as good as one's own, so the socket is given to another user.
            os.fchown(client.fileno(), 65_534, -1)
            assert not machine.network.is_of_owner(local, remote)
            monkeypatch.setattr(os, "geteuid", lambda: 65_534)
            assert machine.network.is_of_owner(local, remote)
    assert not machine.network.is_of_owner(("127.0.0.1", 1), ("127.0.0.1", 2))


async def test_without_the_token_nothing_is_shown() -> None:
    async with showing(busy(), token=TOKEN) as shown:
        for path in ("/", "/metrics", "/api/daemon", "/live", "/health"):
            async with shown.client.get(path) as answer:
                assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        async with shown.client.get("/", headers={"Authorization": "Bearer wrong"}) as answer:
            assert answer.status == 401
        async with shown.client.get("/static/monitor.css") as answer:
            assert answer.status == 200


async def test_a_program_shows_the_token() -> None:
    shows = {"Authorization": f"bearer {TOKEN}"}
    async with showing(busy(), token=TOKEN) as shown, shown.client.get("/metrics", headers=shows) as answer:
        assert answer.status == 200


async def test_a_person_gives_it_once() -> None:
    async with showing(busy(), token=TOKEN) as shown:
        async with shown.client.get("/stores", headers=HTML) as answer:
            assert (answer.status, answer.url.path) == (200, "/login")
            assert "Token" in await answer.text()
        async with shown.client.post("/login", data={"token": "wrong"}) as answer:
            assert (answer.status, "This token is wrong" in await answer.text()) == (403, True)
        async with shown.client.post("/login", data={"token": TOKEN}, allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.cookies[COOKIE]
            assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
        await shown.text("/stores")


async def test_who_guesses_the_token_must_wait() -> None:
    async with showing(busy(), token=TOKEN) as shown:
        statuses = []
        for number in range(FREE_GUESSES + 2):
            async with shown.client.get("/metrics", headers={"Authorization": f"Bearer {number}"}) as answer:
                statuses.append(answer.status)
        assert statuses == [401] * (FREE_GUESSES + 1) + [429]
        # Otherwise a program could tell a right guess from one that waits.
        async with shown.client.post("/login", data={"token": TOKEN}) as answer:
            assert (answer.status, int(answer.headers["Retry-After"])) == (429, 1)


def test_wrong_tokens_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    guesses = Guesses(TOKEN)
    for _ in range(3):
        guesses.is_right(make_mocked_request("GET", "/").clone(remote="10.0.0.7"), "wrong")
    assert [record.args for record in caplog.records] == [("10.0.0.7", 1)]


def test_few_guessers_are_remembered_and_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_GUESSERS", 8)
    guesses = Guesses(TOKEN)
    for number in range(16):
        request = make_mocked_request("GET", "/")
        assert not guesses.is_right(request.clone(remote=str(number)), "wrong")
    assert len(guesses._guessers) == 8


def test_a_token_is_that_one() -> None:
    assert is_token(TOKEN, TOKEN)
    assert not any(is_token(other, TOKEN) for other in ("é", "\udcff", "\ud800"))
