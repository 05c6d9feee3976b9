"""Where services are, as users write it."""

import pytest

from stablecast.runtime.address import AddressError
from stablecast.runtime.service_addresses import parse_services


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
def test_the_documented_forms(texts: list[str], expected: list[str]) -> None:
    """T-411."""
    assert parse_services(texts) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x", "a:b:1", "a:1,"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(AddressError, match="write host:port"):
        parse_services([text])
