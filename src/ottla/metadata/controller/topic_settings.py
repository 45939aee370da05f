"""Computes a topic's effective settings from the layers of configuration. Pure.

The first layer that has a setting wins: the topic's own; this node's dynamic settings; those of all brokers; the node's file;
the default. The broker's settings have other names and units (`TOPIC_SYNONYMS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from ottla.config.values import format_value
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.topics import Topic

SOURCE_TOPIC: Final = 1
SOURCE_BROKER: Final = 2
SOURCE_ALL_BROKERS: Final = 3
SOURCE_STATIC: Final = 4
SOURCE_DEFAULT: Final = 5


class EffectiveSetting(NamedTuple):
    """One setting of a topic: its text, and its layer as the protocol numbers them."""

    name: str
    value: str | None
    source: int


def effective_setting(state: ControllerState, name: str, own: Mapping[str, str]) -> EffectiveSetting:
    """The setting `name` of a topic whose own settings are `own`."""
    if name in own:
        return EffectiveSetting(name, own[name], SOURCE_TOPIC)
    synonyms = TOPIC_SYNONYMS.get(name, ())
    configs, broker = state.image.configs, int(ResourceType.BROKER)
    for source, layer in (
        (SOURCE_BROKER, configs.get((broker, str(state.settings.node_id)), {})),
        (SOURCE_ALL_BROKERS, configs.get((broker, ""), {})),
        (SOURCE_STATIC, state.settings.static),
    ):
        for synonym, factor in synonyms:
            if synonym in layer:
                return EffectiveSetting(name, _scaled(layer[synonym], factor), source)
    return EffectiveSetting(name, format_value(TOPIC_KEYS[name].default), SOURCE_DEFAULT)


def effective_settings(state: ControllerState, own: Mapping[str, str]) -> list[EffectiveSetting]:
    """All settings of a topic whose own settings are `own`, by name; internal ones only if they are set."""
    return [effective_setting(state, name, own) for name, key in sorted(TOPIC_KEYS.items()) if not key.internal or name in own]


def own_settings(state: ControllerState, topic_name: str) -> Mapping[str, str]:
    return state.image.configs.get((int(ResourceType.TOPIC), topic_name), {})


def effective_min_isr(state: ControllerState, topic: Topic) -> int:
    """min.insync.replicas, but at most the topic's number of replicas."""
    value = effective_setting(state, "min.insync.replicas", own_settings(state, topic.name)).value
    return min(int(value or 1), len(topic.partitions[0].replicas))


def unclean_election_allowed(state: ControllerState, topic: Topic) -> bool:
    """Whether a replica that may lack committed records may lead when no other can."""
    value = effective_setting(state, "unclean.leader.election.enable", own_settings(state, topic.name)).value
    return (value or "").strip().lower() == "true"


def _scaled(text: str, factor: int) -> str:
    """The text in the topic's unit; a negative number means "no limit" in any."""
    if factor == 1:
        return text
    value = int(text)
    return text if value < 0 else str(value * factor)
