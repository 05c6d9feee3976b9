"""An option changes its field, at any depth of a configuration."""

import pytest

from stablecast.config.option import Option
from stablecast.config.option_kinds import ListKind, NumberKind, OptionError
from stablecast.core.protocol.settings import RepositoryConfig, SourceConfig, StoreConfig
from tests.support.option_values import show

STORE = StoreConfig("", 0)


def test_a_field_is_found_by_its_path() -> None:
    option = Option("interval", "times.interval_ns", NumberKind(0, 9, "ms", 1000), "summary")
    changed = option.set(SourceConfig("topic", 0, "", ""), 7)
    assert changed.times.interval_ns == 7000
    assert show(option, changed) == "7"
    assert option.path == ["times", "interval_ns"]


def test_an_option_of_a_topic_is_one_of_a_store() -> None:
    option = Option("age", "age_ns", NumberKind(0, 9), "summary")
    assert option.set(RepositoryConfig(), 7).age_ns == 7
    assert option.below("repository").set(STORE, 7).repository.age_ns == 7


def test_an_option_may_be_about_the_whole() -> None:
    option = Option("all", "", ListKind(lambda config, text: [*config, text], "anything"), "summary")
    assert option.set(["a"], "b") == ["a", "b"]


def test_an_option_without_effect_is_checked_all_the_same() -> None:
    option = Option("nothing", None, NumberKind(1, 9), "no effect: there is nothing")
    assert option.set(STORE, 7) is STORE
    assert option.below("repository") == option
    assert (option.path, show(option, STORE)) == ([], "")
    with pytest.raises(OptionError, match="option nothing must lie between 1 and 9, not 0"):
        option.set(STORE, 0)
