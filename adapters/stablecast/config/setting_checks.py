"""Checks of one option of a file: its notices, or the sentence that refuses it."""

import re

from stablecast.config import context_options, resolution_options, transport_options
from stablecast.config.client_configuration import ENDPOINTS
from stablecast.config.option_effects import Effect, effect_of, for_endpoint
from stablecast.config.option_files import Setting
from stablecast.config.option_kinds import Value
from stablecast.config.options import GROUPS, apply, notices
from stablecast.config.profiles import Profile
from stablecast.config.resolution_options import ResolutionSettings
from stablecast.config.wildcard_options import wildcard_notices
from stablecast.core.errors import StablecastError
from stablecast.transports.resolution.udp.settings import AdvertiseOptions, PatternOptions, QueryOptions


def option_notices(setting: Setting) -> list[str]:
    """Return the notices about one option. Raises StablecastError if its scope has no such option or no such value."""
    effect = effect_of(setting.scope, setting.name, setting.value)
    texts = [f"write {setting.name}, with underscores"] if setting.hyphens else []
    if effect.effect is Effect.REFUSED:
        raise StablecastError(effect.reason)
    if effect.effect is Effect.UNHEEDED:
        return [*texts, f"{setting.name} has no effect: {effect.reason}"]
    given: dict[str, Value] = {setting.name: setting.value}
    if setting.scope == "context":
        texts += _tried_in_context(given)
    elif setting.scope == "wildcard_receiver":
        resolution_options.own(PatternOptions(), given)
        texts += wildcard_notices(given)
    else:
        texts += _tried(setting.scope, given)
    return texts


def of_endpoints(kind: str, options: dict[str, Value]) -> dict[str, Value]:
    """Return the options that are not of resolution. Raises OptionError for a wrong value of one that is."""
    if kind == "source":
        return resolution_options.own(AdvertiseOptions(), options)[1]
    return resolution_options.own(QueryOptions(), options)[1]


def _tried_in_context(given: dict[str, Value]) -> list[str]:
    """Set an option of a context in a configuration that is thrown away; return the notices. Raises like the option."""
    resolved, others = resolution_options.of_contexts(given)
    resolution_options.configured(ResolutionSettings(), resolved)
    others = context_options.split(others)[1]
    texts = list(resolution_options.notices(resolved))
    for kind in ENDPOINTS:
        ours = {name: value for name, value in others.items() if for_endpoint(kind, name)}
        texts += [text for text in _tried(kind, ours) if text not in texts]
    return texts


def _tried(kind: str, given: dict[str, Value]) -> list[str]:
    """Set an option of a source or receiver, likewise. The size of a group is tried as that of the first group."""
    _, others = transport_options.split(of_endpoints(kind, given))
    if GROUPS in others:
        others = {GROUPS: re.sub(r"^\d+:", "0:", str(others[GROUPS]))}
    if kind == "source":
        apply(kind, Profile().source, others)
    else:
        apply(kind, Profile().receiver, others)
    return list(notices(kind, others))
