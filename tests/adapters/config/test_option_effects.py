"""Every documented option of a client is in effect, or a notice names the reason why it is not."""

import pytest

from stablecast.config.client_configuration import ClientConfiguration
from stablecast.config.client_files import load
from stablecast.config.library_options import documented
from stablecast.config.option_effects import OF_SCOPES, REASONS, Effect, effect_of
from stablecast.config.transport_options import UNHEEDED
from tests.support.configurations import option_file

DOCUMENTED = sorted(documented())


@pytest.mark.parametrize(("scope", "name"), DOCUMENTED)
@pytest.mark.rows("T-003", "P-850")
def test_each_documented_option_is_in_effect_or_has_a_reason(scope: str, name: str) -> None:
    """Never silent, and never unknown."""
    found = effect_of(scope, name)
    assert found.effect is not Effect.UNKNOWN
    assert bool(found.reason) is (found.effect is Effect.UNHEEDED)


def test_each_reason_is_about_a_documented_option_that_is_not_followed() -> None:
    followed = {(scope, name) for scope, name in DOCUMENTED if effect_of(scope, name).effect is Effect.FOLLOWED}
    assert set(REASONS) <= set(DOCUMENTED)
    assert not followed & set(REASONS)
    assert not {name for _, name in followed} & set(UNHEEDED)


@pytest.mark.parametrize(
    ("scope", "name", "reason"),
    [
        ("context", "resolver_cach", "there is no context option 'resolver_cach': did you mean 'resolver_cache'?"),
        ("source", "use_late_join", "use_late_join is an option of the scope receiver, not source"),
        ("receiver", "nothing_like_it", "there is no receiver option 'nothing_like_it': spec/options.md lists them"),
    ],
)
def test_an_unknown_option_has_the_nearest_known_one(scope: str, name: str, reason: str) -> None:
    assert effect_of(scope, name) == effect_of(scope, name)
    assert effect_of(scope, name).reason == reason


@pytest.mark.parametrize("scope", sorted(OF_SCOPES))
def test_scopes_without_objects_here_are_noticed(scope: str) -> None:
    with option_file(f"{scope} queue_size_warning 5\n") as path:
        found: ClientConfiguration = load([path], environment=False)
    assert [notice.text for notice in found.notices] == [f"queue_size_warning has no effect: {OF_SCOPES[scope]}"]
