"""Addresses of endpoints and services as users write them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.runtime.address import (
    MAX_PORT,
    AddressError,
    check_ip,
    is_host,
    join,
    parse,
    parse_place,
    parse_services,
)


@given(st.ip_addresses(v=4), st.integers(0, MAX_PORT))
def test_a_joined_address_is_parsed_back(host: object, port: int) -> None:
    assert parse(join(str(host), port)) == (str(host), port)


@given(st.text(max_size=30))
def test_anything_else_is_an_address_error(text: str) -> None:
    with contextlib.suppress(AddressError):
        host, port = parse(text)
        assert check_ip(host) == host
        assert 0 <= port <= MAX_PORT


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("127.0.0.1", "write ip:port"),
        ("127.0.0.1:", "write ip:port"),
        ("127.0.0.1:65536", "write ip:port"),
        ("127.0.0.1:-1", "write ip:port"),
        ("localhost:1", "host names are not resolved here"),
        ("::1:80", "is an IPv6 address, and the messages of the protocol carry IPv4 addresses only"),
        ("[fe80::1]:80", "is an IPv6 address, and the messages of the protocol carry IPv4 addresses only"),
        ("", "write ip:port"),
    ],
)
def test_the_remedy_is_named(text: str, remedy: str) -> None:
    with pytest.raises(AddressError, match=remedy):
        parse(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("localhost:1", ("localhost", 1)),
        ("store-1.example.com:14567", ("store-1.example.com", 14567)),
        ("127.0.0.1:2", ("127.0.0.1", 2)),
    ],
)
def test_a_place_may_have_a_host(text: str, place: tuple[str, int]) -> None:
    assert parse_place(text) == place
    assert is_host(text) is (place[0] != "127.0.0.1")


@pytest.mark.parametrize(
    "text", ["1:2", "300.0.0.1:1", "a b:1", ":1", "host:", "host:65536", "::1:80", "x" * 64 + ":1"]
)
def test_other_texts_are_no_places(text: str) -> None:
    with pytest.raises(AddressError):
        parse_place(text)


@pytest.mark.rows("T-411")
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["10.29.3.41:12000"], ["10.29.3.41:12000"]),
        (["test1.example.com:12000"], ["test1.example.com:12000"]),
        (
            ["test1.example.com:12000,test2.example.com:12000"],
            ["test1.example.com:12000", "test2.example.com:12000"],
        ),
        (["a:1, b:2", "c:3"], ["a:1", "b:2", "c:3"]),
        ([], []),
    ],
)
def test_the_documented_forms_of_services(texts: list[str], expected: list[str]) -> None:
    assert parse_services(texts) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x", "a:b:1", "a:1,"])
def test_a_malformed_service_address_is_reported(text: str) -> None:
    with pytest.raises(AddressError, match="write host:port"):
        parse_services([text])
