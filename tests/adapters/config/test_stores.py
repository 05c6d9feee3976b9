"""The stores of a source as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.config.options import apply
from stablecast.config.stores import (
    MAX_GROUP,
    MAX_REG_ID,
    StoreListError,
    add_group,
    add_named_store,
    add_store,
    named_store,
    store_spec,
)
from stablecast.core.protocol.quorum import GroupRules
from stablecast.core.protocol.settings import SourceConfig, StoreSpec
from stablecast.runtime.address import AddressError, is_host
from stablecast.transports.codec.domains import MAX_DOMAIN, join_domain

SOURCE = SourceConfig("topic", 0, "", "")
REG_IDS = st.integers(0, MAX_REG_ID)
GROUPS = st.integers(0, MAX_GROUP)
NAMES = st.text("abcXYZ019-_", min_size=1, max_size=128)


@pytest.mark.rows("P-201", "P-212")
@given(
    st.none() | st.integers(0, MAX_DOMAIN),
    st.ip_addresses(v=4),
    st.integers(0, 65_535),
    st.none() | REG_IDS | st.tuples(REG_IDS, GROUPS),
)
def test_a_written_form_is_parsed_back(
    domain: int | None, host: object, port: int, rest: int | tuple[int, int] | None
) -> None:
    """With and without domain, RegID and group."""
    reg_id, group = rest if isinstance(rest, tuple) else (rest or 0, 0)
    tail = "" if rest is None else f":{reg_id}:{group}" if isinstance(rest, tuple) else f":{reg_id}"
    text = f"{'' if domain is None else f'{domain}:'}{host}:{port}{tail}"
    assert store_spec(text) == StoreSpec(join_domain(domain or 0, f"{host}:{port}"), reg_id, group)


def test_a_host_in_another_domain_is_located_there() -> None:
    assert store_spec("2:storehost:14567:9") == StoreSpec("", 9, 0, "2:storehost:14567")
    assert store_spec("0:storehost:14567") == StoreSpec("", 0, 0, "storehost:14567")
    assert is_host("2:storehost:14567")


@pytest.mark.rows("P-212", "P-815")
@given(NAMES, st.none() | REG_IDS | st.tuples(REG_IDS, GROUPS))
def test_a_name_is_read(name: str, rest: int | tuple[int, int] | None) -> None:
    reg_id, group = rest if isinstance(rest, tuple) else (rest or 0, 0)
    tail = "" if rest is None else f":{reg_id}:{group}" if isinstance(rest, tuple) else f":{reg_id}"
    assert named_store(name + tail) == StoreSpec("", reg_id, group, name)


@pytest.mark.rows("P-201", "P-208", "P-212", "P-504")
@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("10.29.3.16:14567", StoreSpec("10.29.3.16:14567")),
        ("127.0.0.1:14567", StoreSpec("127.0.0.1:14567")),
        ("127.0.0.1:14567:1000", StoreSpec("127.0.0.1:14567", 1000)),
        ("127.0.0.1:14567:2795623327", StoreSpec("127.0.0.1:14567", 2_795_623_327)),
        ("10.29.3.77:15313:150000:0", StoreSpec("10.29.3.77:15313", 150_000)),
        ("10.29.3.76:16313:160000:0", StoreSpec("10.29.3.76:16313", 160_000)),
        ("10.29.3.75:17313:170000:0", StoreSpec("10.29.3.75:17313", 170_000)),
    ],
)
def test_every_store_of_the_guide_by_address(text: str, spec: StoreSpec) -> None:
    assert store_spec(text) == spec


@pytest.mark.rows("P-211", "P-212")
@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("NEWYORK-1", StoreSpec(name="NEWYORK-1")),
        ("store0rpp:2929:0", StoreSpec("", 2929, 0, "store0rpp")),
        ("store1rpp:2930:1", StoreSpec("", 2930, 1, "store1rpp")),
    ],
)
def test_every_store_of_the_guide_by_name(text: str, spec: StoreSpec) -> None:
    """C-06."""
    assert named_store(text) == spec


@pytest.mark.rows("P-213")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("127.0.0.1:14567:x", "'x' is not a registration ID: write a number from 0 to 4294967295"),
        ("127.0.0.1:14567:4294967296", "'4294967296' is not a registration ID"),
        ("127.0.0.1:14567:", "'' is not a registration ID"),
        ("127.0.0.1:14567:1:256", "'256' is not a group index: write a number from 0 to 255"),
        (
            "127.0.0.1:14567:1:2:3",
            "'127.0.0.1:14567:1:2:3' is not a store: write ip:port, ip:port:regid or ip:port:regid:group",
        ),
        ("4294967296:127.0.0.1:14567", "'4294967296' is not a domain: write a number from 0 to 4294967295"),
        ("127.0.0.1", "'127.0.0.1' is not an address: write ip:port, for example 127.0.0.1:14567"),
        ("st/ore:14567:1", "'st/ore' is not an IPv4 address; host names are not resolved here"),
        ("1:2:3", "'1' is not an IPv4 address; host names are not resolved here"),
    ],
)
def test_sentences(text: str, sentence: str) -> None:
    """An address, not a host name."""
    with pytest.raises((StoreListError, AddressError), match=sentence):
        store_spec(text)


@pytest.mark.rows("P-815", "M-028")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not a store's name: write 1 to 128 letters, digits, hyphens, underscores"),
        ("new york", "'new york' is not a store's name"),
        ("x" * 129, "is not a store's name"),
        ("a:1:2:3", "'a:1:2:3' is not a store: write name, name:regid or name:regid:group"),
        ("a:b", "'b' is not a registration ID"),
    ],
)
def test_sentences_about_names(text: str, sentence: str) -> None:
    """128 characters are a name, 129 are none."""
    with pytest.raises(StoreListError, match=sentence):
        named_store(text)


@pytest.mark.rows("P-512")
def test_the_stores_are_one_group_unless_groups_are_set() -> None:
    two = add_store(add_store(SOURCE, "10.0.0.1:1"), "10.0.0.2:1:5")
    assert two.groups.sizes == (2,)
    assert two.stores == (StoreSpec("10.0.0.1:1"), StoreSpec("10.0.0.2:1", 5))
    grouped = add_group(add_group(two, "0:5"), "1:3")
    assert grouped.groups == GroupRules((5, 3))
    assert add_store(grouped, "10.0.0.3:1:0:1").groups.sizes == (5, 3)
    assert add_group(grouped, "0:7").groups.sizes == (7, 3)
    assert add_group(grouped, "0:0").groups.sizes == ()
    assert add_group(SOURCE, "0:1").groups.sizes == (1,)


def test_the_entry_of_zeros_clears_its_list() -> None:
    """Addresses and names are lists of their own."""
    both = add_named_store(add_store(SOURCE, "10.0.0.1:1"), "NEWYORK-1")
    assert both.groups.sizes == (2,)
    assert add_store(both, "0.0.0.0:0").stores == (StoreSpec(name="NEWYORK-1"),)
    assert add_named_store(both, "0:0").stores == (StoreSpec("10.0.0.1:1"),)
    none = add_named_store(add_store(both, "0.0.0.0:0"), "0:0")
    assert none == SOURCE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("3", "'3' is not a group: write index:size, for example 0:3"),
        ("x:3", "'x' is not a group index: write a number from 0 to 255"),
        ("0:65536", "'65536' is not a group size: write a number from 0 to 65535"),
        ("1:0", "group 1 needs a size of 1 or more"),
    ],
)
def test_sentences_about_groups(text: str, sentence: str) -> None:
    with pytest.raises(StoreListError, match=sentence):
        add_group(SOURCE, text)


@given(st.text(max_size=30))
def test_anything_else_is_refused(text: str) -> None:
    try:
        spec = store_spec(text)
    except (StoreListError, AddressError):
        return
    assert 0 <= spec.reg_id <= MAX_REG_ID


@pytest.mark.rows("P-511", "P-512")
def test_a_group_keeps_its_size_whatever_order_stores_and_group_are_written_in() -> None:
    """Five stores for a group of three are backup stores, not a group of five."""
    stores = ",".join(f"10.0.0.{number}:1" for number in range(1, 6))
    for options in ({"ume_store_group": "0:3", "ume_store": stores}, {"ume_store": stores, "ume_store_group": "0:3"}):
        config = apply("source", SourceConfig("topic", 1, "me", "stream"), options)
        assert (len(config.stores), config.groups.sizes) == (5, (3,))


@pytest.mark.rows("P-512")
@pytest.mark.parametrize(
    ("stores", "groups", "members", "sizes"),
    [
        ("a:1:0:1 b:1:0:1 c:1:0:1", "1:3", [0, 0, 0], (3,)),
        ("a:1:0:1 b:1:0:1", "", [0, 0], (2,)),
        ("a:1:0:1 b:1:0:2 c:1:0:2", "1:1 2:2", [0, 1, 1], (1, 2)),
        ("a:1 b:1:0:7 c:1:0:7", "7:2 0:1", [0, 1, 1], (1, 2)),
        ("a:1 b:1:0:1", "0:1 1:1", [0, 1], (1, 1)),
        ("a:1 b:1:0:3", "0:1", [0, 3], (1,)),
    ],
)
def test_groups_may_have_any_numbers(stores: str, groups: str, members: list[int], sizes: tuple[int, ...]) -> None:
    """The machines number them from 0. A store of a group without a size keeps its number, which `check` reports."""
    found = apply("source", SOURCE, {"ume_store_group": groups, "ume_store": stores})
    assert ([store.group for store in found.stores], found.groups.sizes) == (members, sizes)
