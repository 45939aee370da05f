"""The settings of a resource as DescribeConfigs shows them: value, source and synonyms.

The synonyms of a setting are sorted by priority: dynamic settings of this broker, dynamic settings for all brokers, the file,
the defaults; within a layer the setting with priority first. A setting of unknown type may be a secret and is shown without its
value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.broker.settings import BrokerSettings
from ottla.config.broker_docs import documentation
from ottla.config.broker_keys import BROKER_KEYS, DYNAMIC_ONLY, base_name
from ottla.config.client_metrics_keys import CLIENT_METRICS_DOCS, CLIENT_METRICS_KEYS
from ottla.config.dynamic import broker_synonyms
from ottla.config.group_keys import GROUP_KEYS, GROUP_SYNONYMS
from ottla.config.keys import ConfigKey, UpdateMode
from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT
from ottla.config.values import ConfigType, InvalidConfig, format_value
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

TOPIC_SOURCE: Final = 1
DYNAMIC_BROKER_SOURCE: Final = 2
DYNAMIC_DEFAULT_SOURCE: Final = 3
STATIC_SOURCE: Final = 4
DEFAULT_SOURCE: Final = 5
LOGGER_SOURCE: Final = 6
CLIENT_METRICS_SOURCE: Final = 7
GROUP_SOURCE: Final = 8

_TYPE_NUMBERS = {
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.SHORT: 4,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
    ConfigType.CLASS: 8,
    ConfigType.PASSWORD: 9,
}
_UNKNOWN_TYPE = 0
_NOT_YET = "Without effect yet."
_WITHOUT_EFFECT = "Accepted, since Kafka has it; without effect here."

Synonym = tuple[str, str | None, int]
"""Name, text, source."""


class EntryMaker:
    """Makes the entries of one request, which all have synonyms or not, and documentation or not."""

    def __init__(self, settings: BrokerSettings, include_synonyms: bool, include_documentation: bool) -> None:
        self._settings = settings
        self._include_synonyms = include_synonyms
        self._words = documentation() if include_documentation else None
        self._layers = (
            (settings.dynamic, DYNAMIC_BROKER_SOURCE),
            (settings.dynamic_defaults, DYNAMIC_DEFAULT_SOURCE),
            (settings.static_with_ids, STATIC_SOURCE),
        )

    def topic_entries(self, topic: str, wanted: Callable[[str], bool]) -> list[DescribeConfigsResourceResult]:
        own = self._settings.topic_settings(topic)
        defaults = self._settings.current.log.topic_defaults
        entries = []
        for name in _shown(TOPIC_KEYS, own, wanted):
            key = TOPIC_KEYS.get(name)
            value = _parsed(key, own[name]) if name in own else format_value(getattr(defaults, TOPIC_KEYS[name].attribute))
            synonyms = self._broker_layers(TOPIC_SYNONYMS[name][0][0]) if name in TOPIC_SYNONYMS else []
            if name in own:
                synonyms.insert(0, (name, value, TOPIC_SOURCE))
            entries.append(self._entry(name, value, key, synonyms, words=_topic_words(key)))
        return entries

    def broker_entries(self, wanted: Callable[[str], bool]) -> list[DescribeConfigsResourceResult]:
        """All settings of this broker."""
        merged = self._settings.merged()
        return [self._broker_entry(name, merged, None) for name in _shown(BROKER_KEYS, merged, wanted)]

    def all_brokers_entries(self, wanted: Callable[[str], bool]) -> list[DescribeConfigsResourceResult]:
        """Only the dynamic settings for all brokers."""
        layer = self._settings.dynamic_defaults
        return [self._broker_entry(name, layer, DYNAMIC_DEFAULT_SOURCE) for name in sorted(layer) if wanted(name)]

    def group_entries(self, own: Mapping[str, str], wanted: Callable[[str], bool]) -> list[DescribeConfigsResourceResult]:
        merged = self._settings.merged()
        entries = []
        for name in _shown(GROUP_KEYS, own, wanted):
            key = GROUP_KEYS.get(name)
            broker_name = GROUP_SYNONYMS.get(name)
            if broker_name is not None:
                words = f"For this group, in the place of the broker's {broker_name}."
                value, synonyms = _value(broker_name, merged), self._broker_layers(broker_name)
            else:
                words = None
                value = None if key is None else format_value(key.default)
                synonyms = [(name, value, DEFAULT_SOURCE)] if key is not None else []
            if name in own:
                value = _parsed(key, own[name])
                synonyms.insert(0, (name, value, GROUP_SOURCE))
            entries.append(self._entry(name, value, key, synonyms, words=words))
        return entries

    def client_metrics_entries(
        self, own: Mapping[str, str], wanted: Callable[[str], bool]
    ) -> list[DescribeConfigsResourceResult]:
        entries = []
        for name in _shown(CLIENT_METRICS_KEYS, own, wanted):
            key = CLIENT_METRICS_KEYS.get(name)
            value = _parsed(key, own[name]) if name in own else format_value(CLIENT_METRICS_KEYS[name].default)
            synonyms: list[Synonym] = [(name, value, CLIENT_METRICS_SOURCE)] if name in own else []
            entries.append(self._entry(name, value, key, synonyms, words=CLIENT_METRICS_DOCS.get(name)))
        return entries

    def _broker_entry(self, name: str, layer: Mapping[str, str], source: int | None) -> DescribeConfigsResourceResult:
        key = BROKER_KEYS.get(base_name(name))
        synonyms = self._broker_layers(name)
        if source is not None:
            synonyms = [each for each in synonyms if each[2] == source]
        is_read_only = name not in BROKER_KEYS or BROKER_KEYS[name].update_mode is UpdateMode.READ_ONLY
        words = None if self._words is None or key is None else self._words.get(key.name, _WITHOUT_EFFECT)
        value = _value(name, layer) if name in BROKER_KEYS else layer[name]
        return self._entry(name, value, key, synonyms, is_read_only, words)

    def _broker_layers(self, name: str) -> list[Synonym]:
        """Where the broker setting `name` and its synonyms are set, from the first that is `name` itself."""
        names = broker_synonyms(name)
        found: list[Synonym] = []
        for layer, source in self._layers:
            found += [(each, layer[each], source) for each in names if each in layer]
        for each in names:
            default = format_value(BROKER_KEYS[each].default) if each in BROKER_KEYS and each not in DYNAMIC_ONLY else None
            if default is not None:
                found.append((each, default, DEFAULT_SOURCE))
        first = next((at for at, synonym in enumerate(found) if synonym[0] == name), len(found))
        return found[first:]

    def _entry(
        self,
        name: str,
        value: str | None,
        key: ConfigKey | None,
        synonyms: list[Synonym],
        is_read_only: bool = False,
        words: str | None = None,
    ) -> DescribeConfigsResourceResult:
        is_sensitive = key is None or key.type is ConfigType.PASSWORD
        entry = DescribeConfigsResourceResult(
            name=name,
            value=None if is_sensitive else value,
            read_only=is_read_only,
            config_source=synonyms[0][2] if synonyms else DEFAULT_SOURCE,
            is_sensitive=is_sensitive,
            config_type=_UNKNOWN_TYPE if key is None else _TYPE_NUMBERS[key.type],
            documentation=None if self._words is None else words,
        )
        if self._include_synonyms:
            entry.synonyms = [
                DescribeConfigsSynonym(name=each, value=None if is_sensitive else text, source=source)
                for each, text, source in synonyms
            ]
        return entry


def _topic_words(key: ConfigKey | None) -> str | None:
    if key is None:
        return None
    return f"{key.documentation} {_NOT_YET}" if key.name in TOPIC_WITHOUT_EFFECT else key.documentation


def _shown(table: Mapping[str, ConfigKey], own: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
    """The settings of `table` and `own`, sorted; internal ones only if they are set."""
    names = {name for name in table if wanted(name) and not table[name].internal}
    return sorted(names.union(name for name in own if wanted(name)))


def _value(name: str, settings: Mapping[str, str]) -> str | None:
    """The text of a broker setting's value, as Kafka writes it."""
    key = BROKER_KEYS[name]
    return _parsed(key, settings[name]) if name in settings else format_value(key.default)


def _parsed(key: ConfigKey | None, text: str) -> str | None:
    if key is None:
        return None
    try:
        return format_value(key.parse(text))
    except InvalidConfig:
        return text  # stored by another version of Kafka that accepts it
