"""BrokerSettings: the current settings of this node, from `server.properties` and from the metadata log.

Owns the layers and the snapshots made of them. `apply` replaces `current` and the topics' snapshots as a whole, on the event
loop; code that keeps a snapshot across an await keeps the old one. `apply` returns what changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.loggers import Loggers, PythonLoggers
from ottla.config.dynamic import Layers
from ottla.config.topic import LogConfig
from ottla.config.values import InvalidConfig
from ottla.metadata.image.image import ConfigResource, MetadataImage, ResourceType

if TYPE_CHECKING:
    from ottla.broker.tls_stores import TlsStores
    from ottla.config.broker import BrokerConfig
    from ottla.metadata.image.delta import MetadataDelta

logger = logging.getLogger("ottla.broker.settings")

_NOTHING: Mapping[str, str] = {}


class SettingsChange(NamedTuple):
    """What one `apply` changed."""

    attributes: tuple[str, ...] = ()
    """Attributes of `BrokerConfig` whose value changed; `log` means any of the log's settings."""
    topic_defaults_changed: bool = False
    """Whether the defaults for topics changed: every log needs a new snapshot."""
    topics: tuple[str, ...] = ()
    """Topics whose own settings changed, sorted."""
    brokers_changed: bool = False
    """Whether someone set settings of this broker, or of all brokers, perhaps to what they were."""


class BrokerSettings:
    """The settings of one node, in all their layers."""

    def __init__(self, static: Mapping[str, str], *, hostname: str = "localhost", loggers: Loggers | None = None) -> None:
        """Raises `InvalidConfig` if the texts of `server.properties` are not valid."""
        self.static: Mapping[str, str] = dict(static)
        self.loggers: Loggers = loggers or PythonLoggers()
        self._hostname = hostname
        self._layers = Layers(self.static, {}, {}, hostname)
        self.current: BrokerConfig = self._layers.config
        self._stored: Mapping[ConfigResource, Mapping[str, str]] = {}
        self._topics: dict[str, LogConfig] = {}
        self.stores: TlsStores | None = None
        """The stores of the open TLS listeners, which changed settings must fit; None: there are no such listeners."""

    @property
    def dynamic_defaults(self) -> Mapping[str, str]:
        """The dynamic settings for all brokers, as far as they are valid."""
        return self._layers.cluster

    @property
    def dynamic(self) -> Mapping[str, str]:
        """The dynamic settings of this broker, as far as they are valid."""
        return self._layers.broker

    @property
    def static_with_ids(self) -> Mapping[str, str]:
        """`static`, with the node's id under both of its names, node.id and broker.id."""
        node_id = self.static.get("node.id", self.static.get("broker.id", ""))
        return {"node.id": node_id, "broker.id": node_id, **self.static}

    def merged(self) -> Mapping[str, str]:
        """All broker settings that are set, with the text of the layer that wins."""
        node_id = self.static_with_ids["node.id"]
        return {"node.id": node_id, "broker.id": node_id, **self._layers.settings()}

    def check_change(self, layer: Mapping[str, str], *, per_broker: bool) -> None:
        """Raise `InvalidConfig` unless `layer` are valid dynamic settings for this broker (`per_broker`) or for all."""
        config = self._layers.check_change(layer, per_broker=per_broker)
        if per_broker and self.stores is not None:
            self.stores.check(config)

    def topic_settings(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings."""
        return self._stored.get((ResourceType.TOPIC, topic), _NOTHING)

    def topic_config(self, topic: str) -> LogConfig:
        """The settings of the topic's logs: its own over the broker's defaults."""
        config = self._topics.get(topic)
        if config is None:
            config = self._topics[topic] = self._make_topic_config(topic)
        return config

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> SettingsChange:
        """Take the dynamic layers from `image`, to which `delta` led; returns what changed."""
        self._stored = image.configs
        for gone in delta.deleted_topics.values():
            self._topics.pop(gone.name, None)
        topics = sorted(name for type_, name in delta.changed_configs if type_ == ResourceType.TOPIC)
        for name in topics:
            self._topics.pop(name, None)
        own = ((ResourceType.BROKER, ""), (ResourceType.BROKER, str(self.current.node_id)))
        if not any(resource in delta.changed_configs for resource in own):
            return SettingsChange(topics=tuple(topics))
        before, texts_before = self.current, self._layers.settings()
        self._take_layers(image)
        attributes = tuple(name for name in before.__slots__ if getattr(before, name) != getattr(self.current, name))
        texts = self._layers.settings()
        changed = sorted(name for name in texts_before.keys() | texts.keys() if texts_before.get(name) != texts.get(name))
        if attributes:
            logger.info("settings changed at run time: %s", ", ".join(changed))
        defaults_changed = before.log.topic_defaults != self.current.log.topic_defaults
        if defaults_changed:
            self._topics.clear()
        return SettingsChange(attributes, defaults_changed, tuple(topics), brokers_changed=True)

    def _take_layers(self, image: MetadataImage) -> None:
        cluster = image.configs.get((ResourceType.BROKER, ""), _NOTHING)
        broker = image.configs.get((ResourceType.BROKER, str(self.current.node_id)), _NOTHING)
        known = self._layers.rejected
        self._layers = Layers(self.static, cluster, broker, self._hostname)
        self.current = self._layers.config
        for name, why in self._layers.rejected.items():
            if known.get(name) != why:
                logger.warning("the stored broker setting %s is ignored: %s", name, why)

    def _make_topic_config(self, topic: str) -> LogConfig:
        config = self.current.log.topic_defaults
        stored = self.topic_settings(topic)
        try:
            return config.with_settings(stored)
        except InvalidConfig:
            pass  # apply them one by one, to ignore only the invalid ones
        for name, text in stored.items():
            try:
                config = config.with_settings({name: text})
            except InvalidConfig as refused:
                logger.warning("the stored setting %s of topic %s is ignored: %s", name, topic, refused)
        return config
