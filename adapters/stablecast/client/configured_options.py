"""The options that a context takes from configuration files, below those that the application gives."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from stablecast.client.advice import log
from stablecast.config.client_configuration import ClientConfiguration, overridden
from stablecast.config.context_options import NO_REQUEST_PORT, ContextConfig
from stablecast.config.options import Value, contradictions
from stablecast.config.resolution_options import ResolutionSettings, configured
from stablecast.core.errors import ConfigError
from stablecast.runtime.interfaces import address_of

ContextT = TypeVar("ContextT")

STORES = ("ume_store", "ume_store_name", "ume_store_group")
"""The options that the argument `stores` replaces."""

BEHAVIORS = ("ume_retention_intragroup_stability_behavior", "ume_retention_intergroup_stability_behavior")
"""The options that decide at which of its stores a message of a source is stable."""


def of_context(
    configuration: ClientConfiguration,
    settings: ResolutionSettings | None,
    relays: Sequence[str],
    services: Sequence[str],
) -> tuple[ResolutionSettings, ContextConfig]:
    """Return the resolution and the settings of a context: files above `settings`, and below relays and services.

    Raises OptionError, AddressError, ConfigError.
    """
    options, own = configuration.of_context()
    configuration.check("context", None, options)
    for given, name in ((relays, "resolver_unicast_daemon"), (services, "resolver_service")):
        if given:
            options.pop(name, None)
    found = configured(settings or ResolutionSettings(), options)
    if found.multicast is not None and not found.multicast.interface:
        found = attrs.evolve(found, multicast=attrs.evolve(found.multicast, interface=own.default_interface))
    assert own.ports  # The range is checked before anything is opened.
    return found, own


def interface_of(own: ContextConfig) -> str:
    """Return the address of the configured interface, empty without one. Raises InterfaceError."""
    return address_of(own.interface) if own.interface else ""


def of_endpoint(
    configuration: ClientConfiguration,
    scope: str,
    topic: str,
    options: Mapping[str, Value],
    *,
    stores: Sequence[str] = (),
    session_id: int | None = None,
    binds: bool = True,
) -> dict[str, Value]:
    """Return the options of a source or receiver: those of the files, below those of the application.

    Args:
        configuration: The files.
        scope: source or receiver.
        topic: The topic.
        options: Those of the application.
        stores: The stores that the application names; they replace those of the files.
        session_id: The session id that the application gives; None: the files may set it.
        binds: False means that there is no persistence (P-038).

    Raises:
        OptionError: A file denies the topic, or a value.
        ConfigError: Stores are configured, and there is no persistence.
    """
    found = configuration.of_endpoint(scope, topic)
    for name in STORES if stores else ():
        found.pop(name, None)
    if session_id is not None:
        found.pop("ume_session_id", None)
    found = overridden(found, options)
    configuration.check(scope, topic, found)
    if not binds:
        if scope == "source" and (stores or any(found.get(name) for name in STORES[:2])):
            raise ConfigError(NO_REQUEST_PORT)
        if scope == "receiver":
            found["ume_use_store"] = 0
    for text in contradictions(scope, found, stores):
        log.warning(text)
    return found


def of_pattern(configuration: ClientConfiguration, pattern: str, options: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options of a wildcard receiver: those of files for patterns, below those of the application.

    The options of files for receivers are added for each topic (`of_endpoint`).

    Raises OptionError if a file denies the pattern, or a value.
    """
    of_files = configuration.of("wildcard_receiver", pattern)
    found = overridden(of_files, options) if of_files else dict(options)
    configuration.check("wildcard_receiver", pattern, found)
    return found


def report(configuration: ClientConfiguration) -> None:
    """Log the notices about configuration files."""
    for notice in configuration.notices:
        log.warning(notice.told(""))


def from_config(
    make: Callable[..., ContextT],
    *files: str | Path,
    application: str = "",
    context: str = "",
    environment: bool = True,
    **arguments: Any,
) -> ContextT:
    """Make a context from configuration files; its sources and receivers take their options from them, by topic.

    Args:
        make: The class of the context.
        files: Option files (`scope option value` lines), XML files (`.xml`) and TOML files (`.toml`). Option files
            override XML files; otherwise later files override earlier ones.
        application: The application of XML files; by default STABLECAST_CONFIG_APPLICATION, or the one without a
            name, or the only one.
        context: The context of that application, likewise.
        environment: False ignores the files that the variable STABLECAST_CONFIG names, which lie below `files`.
        arguments: Arguments of `Context`, which override the files.

    Raises:
        ConfigFileError: A file is wrong; the message names file, line and the nearest known option.
        OSError: A file cannot be read.
        AddressError, OptionError, InterfaceError, ConfigError: Like `Context`.
    """
    from stablecast.config import client_files  # noqa: PLC0415 - a context without files needs none of the parsers

    paths = [Path(file) for file in files]
    configuration = client_files.load(paths, application, context, environment=environment)
    report(configuration)
    return make(configuration=configuration, **arguments)
