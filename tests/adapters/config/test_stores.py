"""The store list as users write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.config.stores import MAX_REG_ID, StoreListError, store_spec
from stablecast.core.settings import StoreSpec
from stablecast.net.address import AddressError


@given(st.ip_addresses(v=4), st.integers(0, 65_535), st.none() | st.integers(0, MAX_REG_ID))
def test_what_is_written_is_read(host: object, port: int, reg_id: int | None) -> None:
    text = f"{host}:{port}" + ("" if reg_id is None else f":{reg_id}")
    assert store_spec(text) == StoreSpec(f"{host}:{port}", reg_id or 0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("127.0.0.1:14567:x", "'x' is not a registration ID: write a number from 0 to 4294967295"),
        ("127.0.0.1:14567:4294967296", "'4294967296' is not a registration ID"),
        ("127.0.0.1:14567:", "'' is not a registration ID"),
        ("127.0.0.1:14567:1:2", "'127.0.0.1:14567:1:2' is not a store: write ip:port or ip:port:regid"),
        ("127.0.0.1", "'127.0.0.1' is not an address: write ip:port, for example 127.0.0.1:14567"),
        ("store:14567:1", "'store' is not an IPv4 address; host names are not resolved here"),
    ],
)
def test_sentences(text: str, sentence: str) -> None:
    with pytest.raises((StoreListError, AddressError), match=sentence):
        store_spec(text)


@given(st.text(max_size=30))
def test_anything_else_is_refused(text: str) -> None:
    try:
        spec = store_spec(text)
    except (StoreListError, AddressError):
        return
    assert 0 <= spec.reg_id <= MAX_REG_ID
