"""What a consumer is made with: its settings, and the deserializers that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client_core.deserializers import resolve_deserializer
from ottla.config.client import ConsumerSettings, consumer_settings, load
from ottla.records.kernels import Deserializer

if TYPE_CHECKING:
    from ottla.client.interceptors import ConsumerInterceptors


class ConsumerOptions(NamedTuple):
    """The settings of a consumer, ready for use."""

    settings: ConsumerSettings
    deserializers: tuple[Deserializer | None, Deserializer | None]
    """Of the key and of the value; None where bytes are handed out as they are."""
    interceptors: ConsumerInterceptors | None = None


def consumer_options(bootstrap_servers: Any, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ConsumerOptions:
    """The options for what a caller has given; a mistake raises at once."""
    settings = consumer_settings(bootstrap_servers, config, keywords)
    key = resolve_deserializer(load("key.deserializer", settings.key_deserializer), is_key=True)
    value = resolve_deserializer(load("value.deserializer", settings.value_deserializer), is_key=False)
    chain = None
    if settings.interceptor_classes:
        from ottla.client.interceptors import consumer_interceptors  # late: few consumers have some

        chain = consumer_interceptors(settings, settings.interceptor_classes)
    return ConsumerOptions(settings, (key, value), chain)
