"""Every documented name sets its field; any other name is refused in one sentence."""

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablecast.config.disk_options import DiskConfig, together
from stablecast.config.options import (
    ALIASES,
    SCOPES,
    Option,
    OptionError,
    Value,
    apply,
    disk_options,
    notices,
    parse_options,
)
from stablecast.config.stores import StoreListError
from stablecast.config.transport_options import TransportConfig
from stablecast.core.errors import StablecastError
from stablecast.core.machine.units import MILLISECOND, SECOND
from stablecast.core.protocol.quorum import GroupRules, Intergroup
from stablecast.core.protocol.settings import (
    AckMode,
    FlightBehavior,
    Notification,
    ReceiverConfig,
    RepositoryConfig,
    RepositoryType,
    SourceConfig,
    StoreBehavior,
    StoreConfig,
    StoreSpec,
)
from stablecast.runtime.address import AddressError
from tests.support.option_values import show, type_of, unit_of

CONFIGS: dict[str, Any] = {
    "source": SourceConfig("topic", 0, "", ""),
    "receiver": ReceiverConfig("topic", 0, ""),
    "store": StoreConfig("", 0),
    "topic": RepositoryConfig(),
    "disk": DiskConfig(),
    "transport": TransportConfig(),
}
TABLE = [(scope, option) for scope, options in SCOPES.items() for option in options]
EACH = pytest.mark.parametrize(("scope", "option"), TABLE, ids=[f"{s}-{o.name}" for s, o in TABLE])
NAMES = {scope: [option.name for option in options] for scope, options in SCOPES.items()}


def value_of(config: Any, option: Option) -> Any:
    for part in option.path:
        config = getattr(config, part)
    return config


def flat(config: Any, prefix: str = "") -> dict[str, object]:
    """Every field of a configuration by its dotted name."""
    found: dict[str, object] = {}
    for field in attrs.fields(type(config)):
        value = getattr(config, field.name)
        if attrs.has(type(value)):
            found |= flat(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found


def acceptable(option: Option, config: Any) -> list[Value]:
    """Values of any kind that this option takes."""
    words = [word.strip() for word in option.kind.allowed.split(",")]
    candidates: list[Value] = [0, 1, 2, 7, 1234, 200_000, "10.0.0.1:14567", "NEWYORK-1", "0:3", "239.1.2.3", *words]
    taken: list[Value] = []
    for candidate in candidates:
        try:
            option.set(config, candidate)
        except (OptionError, StoreListError, AddressError):
            continue
        taken.append(candidate)
    return taken


TOGETHER = {
    "ume_confirmed_delivery_notification": {"confirmations", "confirmed_notification"},
    "ume_store": {"stores", "groups.sizes"},
    "ume_store_name": {"stores", "groups.sizes"},
    "ume_store_group": {"groups.sizes"},
}
"""The options that are about the configuration as a whole, and the fields they change."""


@pytest.mark.rows("P-853")
@EACH
def test_an_option_changes_its_field_and_no_other(scope: str, option: Option) -> None:
    """Each option does something, or says that it does nothing."""
    default = CONFIGS[scope]
    changed = [flat(apply(scope, default, {option.name: value})) for value in acceptable(option, default)]
    assert changed
    before = flat(default)
    differing = {name for config in changed for name, content in before.items() if config[name] != content}
    if option.field is None:
        assert not differing
    else:
        assert differing == TOGETHER.get(option.name, {option.field})


@EACH
def test_an_option_has_a_documented_name_and_shows_its_value_in_the_documented_unit(scope: str, option: Option) -> None:
    library = r"(ume|retransmit|use|otr|late|ordered|delivery)(_[a-z]+)+"
    pattern = rf"[a-z]+(-[a-z]+)+|{library}" if scope in ("store", "topic", "disk") else library
    pattern = r"(transport|implicit)(_[a-z]+)*" if scope == "transport" else pattern
    assert re.fullmatch(pattern, option.name)
    assert option.summary
    assert NAMES[scope].count(option.name) == 1
    if option.field is None:
        return
    for value in acceptable(option, CONFIGS[scope]) if type_of(option.kind) != "list" else ():
        config = apply(scope, CONFIGS[scope], {option.name: value})
        assert apply(scope, CONFIGS[scope], {option.name: show(option, config)}) == config
    factor = {"ms": MILLISECOND, "s": SECOND}.get(unit_of(option.kind))
    if factor is not None:
        number = 999 if scope == "transport" else 1234
        config = apply(scope, CONFIGS[scope], {option.name: str(number)})
        assert value_of(config, option) == number * (1 if option.field.endswith("_ms") else factor)


@given(st.sampled_from(TABLE), st.text(max_size=12) | st.integers() | st.booleans())
def test_any_value_is_accepted_or_refused_in_one_sentence(place: tuple[str, Option], value: Value) -> None:
    scope, option = place
    refused: StablecastError | None = None
    try:
        config = apply(scope, CONFIGS[scope], {option.name: value})
    except (OptionError, StoreListError, AddressError) as error:
        refused = error
    else:
        assert flat(config).keys() == flat(CONFIGS[scope]).keys()
    if refused is not None:
        reasons = "wants a whole number, not '|must be one of |must be 0 or 1, not '|must lie between"
        entry = type_of(option.kind) in ("list", "address") and "' is not a|group \\d+ |address"
        assert re.search(entry or f"option {option.name} ({reasons})", str(refused))


@given(st.sampled_from(sorted(NAMES)), st.data())
def test_a_misspelt_name_is_answered_with_the_nearest(scope: str, draw: st.DataObject) -> None:
    name = draw.draw(st.sampled_from(NAMES[scope]))
    place = draw.draw(st.integers(0, len(name) - 1))
    misspelt = name[:place] + name[place + 1 :]
    if misspelt not in NAMES[scope] and misspelt not in ALIASES[scope]:
        with pytest.raises(OptionError) as raised:
            apply(scope, CONFIGS[scope], {misspelt: 1})
        meant = re.fullmatch(rf"there is no {scope} option '{misspelt}': did you mean '(.*)'\?", str(raised.value))
        assert meant is not None
        assert meant[1] in NAMES[scope]


@pytest.mark.parametrize(
    ("scope", "name", "value", "sentence"),
    [
        ("source", "ume_flight_size", 0, "option ume_flight_size must lie between 1 and 2147483647, not 0"),
        ("source", "ume_flight_size", "many", "option ume_flight_size wants a whole number, not 'many'"),
        ("source", "ume_flight_size", 1.5, "option ume_flight_size wants a whole number, not '1.5'"),
        (
            "source",
            "ume_flight_size_behavior",
            "wait",
            "option ume_flight_size_behavior must be one of block, notify, not 'wait'",
        ),
        ("receiver", "ume_use_ack_batching", "yes", "option ume_use_ack_batching must be 0 or 1, not 'yes'"),
        (
            "source",
            "ume_store_behavior",
            "gc",
            "option ume_store_behavior must be one of qc, quorum-consensus, rr, round-robin, not 'gc'",
        ),
        ("store", "repository-disk-file-size-limit", 196_991, "must lie between 196992 and "),
        ("store", "repository-disk-async-buffer-length", 65_663, "must lie between 65664 and "),
        ("store", "receiver-new-registration-rollback", 2_147_483_648, "must lie between 0 and 2147483647"),
        ("store", "source-activity-timeou", 1, "did you mean 'source-activity-timeout'?"),
        (
            "store",
            "completely different",
            1,
            "there is no store option 'completely different': spec/options.md lists them",
        ),
    ],
)
def test_sentences(scope: str, name: str, value: Value, sentence: str) -> None:
    with pytest.raises(OptionError, match=re.escape(sentence)):
        apply(scope, CONFIGS[scope], {name: value})


def test_several_options_and_spellings() -> None:
    options: dict[str, Value] = {"ume_session_id": "0xff", "ume_use_ack_batching": False, "ume_state_lifetime": "1000"}
    config = apply("receiver", ReceiverConfig("topic", 0, ""), options)
    assert (config.session_id, config.ack_mode, config.state_lifetime_ns) == (
        255,
        AckMode.IMMEDIATE,
        1000 * MILLISECOND,
    )
    same: dict[str, Value] = {"ume_session_id": 255, "ume_use_ack_batching": "0", "ume_state_lifetime": 1000}
    assert apply("receiver", ReceiverConfig("topic", 0, ""), same) == config
    assert apply("receiver", config, {}) is config


@pytest.mark.rows("P-827", "P-829", "P-837")
def test_the_boundaries_of_sizes_on_disk() -> None:
    """The smallest file has room for three of the smallest buffers. P-837, U16: rollback 0 is taken."""
    options: dict[str, Value] = {
        "repository-disk-file-size-limit": 196_992,
        "repository-disk-async-buffer-length": 65_664,
        "receiver-new-registration-rollback": 0,
    }
    repository = apply("store", StoreConfig("", 0), options).repository
    assert repository is not None
    assert (repository.disk_limit, repository.rollback) == (3 * 65_664, 0)


@pytest.mark.rows("P-343", "P-345", "P-346")
def test_the_last_of_two_ways_to_acknowledge_wins() -> None:
    """Batching and explicit acknowledgement exclude each other."""
    receiver = ReceiverConfig("topic", 0, "")
    for options, mode in (
        ({"ume_use_ack_batching": 1, "ume_explicit_ack_only": 1}, AckMode.EXPLICIT),
        ({"ume_explicit_ack_only": 1, "ume_use_ack_batching": 1}, AckMode.BATCHED),
        ({"ume_explicit_ack_only": 1, "ume_use_ack_batching": 0}, AckMode.EXPLICIT),
        ({"ume_use_ack_batching": 1, "ume_explicit_ack_only": 0}, AckMode.BATCHED),
        ({"ume_use_ack_batching": 0, "ume_explicit_ack_only": 0}, AckMode.IMMEDIATE),
    ):
        assert apply("receiver", receiver, options).ack_mode is mode
    explicit = apply("receiver", receiver, {"ume_explicit_ack_only": 1})
    assert apply("receiver", explicit, {"ume_explicit_ack_only": 0}).ack_mode is AckMode.IMMEDIATE


@pytest.mark.rows("P-657")
@pytest.mark.parametrize(
    ("level", "asked", "notification"),
    [
        (0, False, Notification.NONE),
        (1, True, Notification.FRAGMENTS),
        (2, True, Notification.MESSAGES),
        (3, True, Notification.BOTH),
    ],
)
def test_confirmations_are_asked_for_by_their_events(level: int, asked: bool, notification: Notification) -> None:
    config = apply("source", SourceConfig("topic", 0, "", ""), {"ume_confirmed_delivery_notification": level})
    assert (config.confirmations, config.confirmed_notification) == (asked, notification)


@pytest.mark.rows("P-512", "P-513", "P-514", "P-516")
def test_the_documented_thirteen_stores_in_three_groups() -> None:
    """The guide's sample with groups of 5, 3 and 5."""
    hosts = [f"10.29.3.{host}:15313:{reg_id}:{group}" for host, reg_id, group in zip(
        range(60, 73), range(101_000, 114_000, 1000), [0] * 5 + [1] * 3 + [2] * 5, strict=True
    )]  # fmt: skip
    options: dict[str, Value] = {
        "ume_store": " ".join(hosts),
        "ume_message_stability_notification": 1,
        "ume_store_behavior": "qc",
        "ume_store_group": "0:5, 1:3, 2:5",
        "ume_retention_intragroup_stability_behavior": "quorum",
        "ume_retention_intergroup_stability_behavior": "all-active",
    }
    config = apply("source", SourceConfig("topic", 0, "", ""), options)
    assert config.groups == GroupRules((5, 3, 5), intergroup=Intergroup.ALL_ACTIVE)
    assert [store.group for store in config.stores] == [0] * 5 + [1] * 3 + [2] * 5
    assert config.stores[5] == StoreSpec("10.29.3.65:15313", 106_000, 1)


@pytest.mark.rows("P-501", "P-504")
def test_the_documented_round_robin_stores() -> None:
    stores = "10.29.3.77:15313:150000:0 10.29.3.76:16313:160000:0 10.29.3.75:17313:170000:0"
    config = apply("source", SourceConfig("topic", 0, "", ""), {"ume_store": stores, "ume_store_behavior": "rr"})
    assert config.behavior is StoreBehavior.RR
    assert [store.reg_id for store in config.stores] == [150_000, 160_000, 170_000]


@pytest.mark.rows("P-562", "P-565", "P-568", "P-595")
def test_the_documented_receiver_paced_client() -> None:
    """The guide's sample for clients, without what is for other transports."""
    source = apply(
        "source",
        SourceConfig("topic", 0, "", ""),
        {
            "ume_store_group": "0:1 1:1",
            "ume_store_name": "store1rpp:2929:0 store1rpp:2930:1",
            "ume_store_behavior": "qc",
            "ume_flight_size": 500,
            "ume_flight_size_bytes": 1_000_000,
            "ume_receiver_paced_persistence": 1,
            "ume_repository_size_threshold": 104_857_600,
            "ume_repository_size_limit": 209_715_200,
            "ume_repository_disk_file_size_limit": 1_073_741_824,
            "ume_repository_ack_on_reception": 1,
            "ume_write_delay": 1000,
            "ume_proxy_source": 1,
            "ume_session_id": 535_353,
            "ume_source_liveness_timeout": 4000,
            "ume_confirmed_delivery_notification": 1,
        },
    )
    assert source.wishes.write_delay_ms == 1000
    assert (source.groups.sizes, [store.name for store in source.stores]) == ((1, 1), ["store1rpp"] * 2)
    assert source.flight_behavior is FlightBehavior.BLOCK
    receiver = apply(
        "receiver",
        ReceiverConfig("topic", 0, ""),
        {"ume_receiver_paced_persistence": 1, "ume_explicit_ack_only": 1, "ume_receiver_liveness_interval": 1000},
    )
    assert (receiver.pace, receiver.ack_mode) == (source.pace, AckMode.EXPLICIT)


@pytest.mark.rows("P-596", "P-597", "P-848")
def test_the_documented_receiver_paced_store() -> None:
    """The guide's samples for stores."""
    options: dict[str, Value] = {
        "repository-type": "disk",
        "repository-size-threshold": 104_857_600,
        "repository-size-limit": 209_715_200,
        "repository-disk-file-size-limit": 1_073_741_824,
        "repository-allow-receiver-paced-persistence": 1,
        "repository-allow-ack-on-reception": 1,
        "repository-disk-write-delay": 1000,
        "source-activity-timeout": 120_000,
        "receiver-activity-timeout": 30_000,
        "retransmission-request-forwarding": 0,
        "receiver-new-registration-rollback": 0,
    }
    repository = apply("topic", RepositoryConfig(), options)
    assert repository.kind is RepositoryType.DISK
    assert (repository.allow_rpp, repository.write_delay_ns) == (True, 1 * SECOND)
    assert apply("store", StoreConfig("", 0), options).repository == repository


@pytest.mark.parametrize(("scope", "old", "new"), [(s, old, new) for s, t in ALIASES.items() for old, new in t.items()])
def test_old_names_are_accepted_with_a_notice(scope: str, old: str, new: str) -> None:
    config = CONFIGS[scope]
    assert apply(scope, config, {old: 1}) == apply(scope, config, {new: 1})
    assert notices(scope, {old: 1, new: 1}) == (f"option {old} is an old name: write {new}",)


@pytest.mark.rows("P-824", "P-825", "P-826", "P-828", "P-830")
def test_disk_options_are_checked_for_a_store_and_set_for_its_journal() -> None:
    """Given for a topic or a store, they are the journal's."""
    options: dict[str, Value] = {
        "repository-disk-max-async-cbs": 7,
        "repository-disk-file-preallocate": 1,
        "repository-disk-max-write-async-cbs": 2,
        "repository-type": "memory",
    }
    assert apply("store", CONFIGS["store"], options) == apply("store", CONFIGS["store"], {"repository-type": "memory"})
    disk = apply("disk", DiskConfig(), disk_options(options))
    assert (disk.reads, disk.preallocate, disk.writes) == (7, True, 2)
    assert notices("store", options) == (
        "option repository-disk-max-async-cbs is an old name: write repository-disk-max-read-async-cbs",
        (
            "option repository-disk-max-write-async-cbs is not followed: there is one write at a time, for all waiting "
            "messages"
        ),
    )
    with pytest.raises(OptionError, match="late_join is an option of the scope source, not store"):
        notices("store", {"late_join": 1})


def test_disk_options_of_topics_are_combined() -> None:
    """The largest buffer, the most reads, and a yes of one is a yes for all."""
    one = DiskConfig(buffer_bytes=70_000, reads=2, writes=1, preallocate=True, checksum=False)
    other = DiskConfig(buffer_bytes=65_664, reads=9, writes=3, preallocate=False, checksum=True)
    assert together([one]) == one
    assert together([one, other]) == together([other, one]) == DiskConfig(70_000, 9, 3, True, True)


def test_options_on_a_command_line_are_name_and_value() -> None:
    assert parse_options(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(OptionError) as told:
        parse_options(["a=1", "verbose"])
    assert str(told.value) == "'verbose' is not an option: write name=value"
