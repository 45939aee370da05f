"""BrokerSettings: what this node goes by right now, from `server.properties` and from what the metadata log says.

Owns the layers and the snapshots made of them. `current` and the topics' snapshots are swapped whole on `apply`, on the event
loop; who keeps one across an await keeps the old one. `apply` tells what changed, for those who must be told.
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
    from ottla.config.broker import BrokerConfig
    from ottla.metadata.image.delta import MetadataDelta

logger = logging.getLogger("ottla.broker.settings")

_NOTHING: Mapping[str, str] = {}


class SettingsChange(NamedTuple):
    """What an `apply` changed."""

    attributes: tuple[str, ...] = ()
    """Attributes of `BrokerConfig` whose value is another one now; `log` stands for any of the log's."""
    topic_defaults_changed: bool = False
    """Whether topics that leave a setting open run with another value now: every log must take its snapshot again."""
    topics: tuple[str, ...] = ()
    """Topics whose own settings changed, sorted."""


class BrokerSettings:
    """The settings of one node, in all their layers."""

    def __init__(self, static: Mapping[str, str], *, hostname: str = "localhost", loggers: Loggers | None = None) -> None:
        """`InvalidConfig` if the texts of `server.properties` cannot stand."""
        self.static: Mapping[str, str] = dict(static)
        self.loggers: Loggers = loggers or PythonLoggers()
        self._hostname = hostname
        self._layers = Layers(self.static, {}, {}, hostname)
        self.current: BrokerConfig = self._layers.config
        self._stored: Mapping[ConfigResource, Mapping[str, str]] = {}
        self._topics: dict[str, LogConfig] = {}

    @property
    def dynamic_defaults(self) -> Mapping[str, str]:
        """What was set at run time for all brokers, as far as it can be used."""
        return self._layers.cluster

    @property
    def dynamic(self) -> Mapping[str, str]:
        """What was set at run time for this broker, as far as it can be used."""
        return self._layers.broker

    @property
    def static_with_ids(self) -> Mapping[str, str]:
        """`static`, in which the two names of the node's id stand for each other."""
        node_id = self.static.get("node.id", self.static.get("broker.id", ""))
        return {"node.id": node_id, "broker.id": node_id, **self.static}

    def merged(self) -> Mapping[str, str]:
        """Every broker setting that is set, with the text that counts."""
        node_id = self.static_with_ids["node.id"]
        return {"node.id": node_id, "broker.id": node_id, **self._layers.settings()}

    def check_change(self, layer: Mapping[str, str], *, per_broker: bool) -> None:
        """`InvalidConfig` unless `layer` may be what is set at run time for this broker, or else for all."""
        self._layers.check_change(layer, per_broker=per_broker)

    def topic_settings(self, topic: str) -> Mapping[str, str]:
        """What the topic itself has set."""
        return self._stored.get((ResourceType.TOPIC, topic), _NOTHING)

    def topic_config(self, topic: str) -> LogConfig:
        """What the topic's logs run with: its own settings over the broker's."""
        config = self._topics.get(topic)
        if config is None:
            config = self._topics[topic] = self._make_topic_config(topic)
        return config

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> SettingsChange:
        """Take the dynamic layers from `image`, which `delta` led to; tells what changed."""
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
        return SettingsChange(attributes, defaults_changed, tuple(topics))

    def _take_layers(self, image: MetadataImage) -> None:
        cluster = image.configs.get((ResourceType.BROKER, ""), _NOTHING)
        broker = image.configs.get((ResourceType.BROKER, str(self.current.node_id)), _NOTHING)
        known = self._layers.rejected
        self._layers = Layers(self.static, cluster, broker, self._hostname)
        self.current = self._layers.config
        for name, why in self._layers.rejected.items():
            if known.get(name) != why:
                logger.warning("the stored broker setting %s is left out: %s", name, why)

    def _make_topic_config(self, topic: str) -> LogConfig:
        config = self.current.log.topic_defaults
        stored = self.topic_settings(topic)
        try:
            return config.with_settings(stored)
        except InvalidConfig:
            pass  # find out which, and keep the others
        for name, text in stored.items():
            try:
                config = config.with_settings({name: text})
            except InvalidConfig as refused:
                logger.warning("the stored setting %s of topic %s is left out: %s", name, topic, refused)
        return config
