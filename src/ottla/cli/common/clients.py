"""Configurations of the producers and consumers that verbs make: from a command's settings, checked before anything is sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from ottla.cli.common.output import warn
from ottla.cli.common.settings import ClientSettings, login_for
from ottla.config.client import consumer_settings, producer_settings
from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.errors import ConfigError

_CONVERSIONS = frozenset({"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"})
"""Left out: a verb says itself what keys and values are."""


class ClientConfig(NamedTuple):
    """What a client is made with: `Producer(config=made.config, **made.login)`."""

    config: dict[str, Any]
    """Settings by Kafka's names."""
    login: dict[str, Any]
    """User name and password, or token, as keywords."""


def producer_config(settings: ClientSettings, defaults: Mapping[str, Any], flags: Mapping[str, Any]) -> ClientConfig:
    """A producer's configuration: `flags` (None: not given) win over the user's properties, and these over `defaults`."""
    return _config(settings, PRODUCER.table, defaults, flags, producer_settings)


def consumer_config(settings: ClientSettings, defaults: Mapping[str, Any], flags: Mapping[str, Any]) -> ClientConfig:
    """A consumer's configuration, with the same precedence as `producer_config`."""
    return _config(settings, CONSUMER.table, defaults, flags, consumer_settings)


def _config(
    settings: ClientSettings,
    table: Any,
    defaults: Mapping[str, Any],
    flags: Mapping[str, Any],
    check: Callable[[Any, Mapping[str, Any], dict[str, Any]], object],
) -> ClientConfig:
    given = {name: value for name, value in settings.properties.items() if name in table and name not in _CONVERSIONS}
    config = {**defaults, **given, **{name: value for name, value in flags.items() if value is not None}}
    login = login_for(settings.properties)
    try:
        check(None, config, login)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return ClientConfig(config, login)


LOGGER = "ottla.client"


class _Printer(logging.Handler):
    def __init__(self, show: Callable[[str], object], after: Callable[[], object] | None) -> None:
        super().__init__(logging.WARNING)
        self._show = show
        self._after = after

    def emit(self, record: logging.LogRecord) -> None:
        self._show(record.getMessage())
        if self._after is not None:
            self._after()


@contextmanager
def client_logs_shown(after: Callable[[], object] | None = None, show: Callable[[str], object] = warn) -> Iterator[None]:
    """Print the client's warnings with `show`, and call `after` after each."""
    logger = logging.getLogger(LOGGER)
    printer = _Printer(show, after)
    logger.addHandler(printer)
    try:
        yield
    finally:
        logger.removeHandler(printer)
