"""One setting, and a table of settings: name, type, default, rule, importance, documentation.

Every kind of settings (topic, broker, group …) is one `ConfigTable`. A table turns texts into checked values. Layers and their
precedence are in `dynamic.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from ottla.config.values import ConfigType, InvalidConfig, Rule, Value, parse_value
from ottla.errors.texts import near_words


class Importance(Enum):
    """Kafka's importance of a setting, as DescribeConfigs and docs show it."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class UpdateMode(Enum):
    """Whether a setting can change while the node runs: not at all, per broker, or also for all brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class ConfigKey(NamedTuple):
    """One setting. `rule` checks a parsed value beyond its type."""

    name: str
    type: ConfigType
    default: Value
    rule: Rule | None
    importance: Importance
    documentation: str
    update_mode: UpdateMode = UpdateMode.CLUSTER_WIDE
    internal: bool = False
    distinct: bool = False
    """For a list: duplicate entries are dropped."""

    @property
    def attribute(self) -> str:
        """The attribute of snapshots such as `LogConfig` that holds this setting's value."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """The checked value of `text`; `InvalidConfig` says what it must be."""
        value = parse_value(self.name, self.type, text)
        if self.distinct and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        self.check(value, text)
        return value

    def check(self, value: Value, shown: str | None = None) -> None:
        """Raise `InvalidConfig` if `value` breaks the setting's rule."""
        must = self.rule(value) if self.rule is not None else None
        if must is not None:
            raise InvalidConfig(self.name, f"{self.name}={value if shown is None else shown}: {must}")


class ConfigTable(Mapping[str, ConfigKey]):
    """The settings of one kind of resource, by name."""

    def __init__(self, subject: str, keys: Iterable[ConfigKey]) -> None:
        self._subject = subject
        self.other_names: Mapping[str, str] = {}
        """What else people call the settings, such as brokers' names of topic settings: for suggestions only."""
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            if key.name in self._keys:
                raise ValueError(f"{subject} setting {key.name} is defined twice")
            self._keys[key.name] = key

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def require_known(self, names: Iterable[str]) -> None:
        """Raise `InvalidConfig` for the first name that is not in this table."""
        for name in names:
            if name not in self:
                near = [self.other_names[name]] if name in self.other_names else near_words(name, self)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise InvalidConfig(name, f"unknown {self._subject} setting {name}{hint}")

    def parse_known(self, settings: Mapping[str, str]) -> dict[str, Value]:
        """The checked values of the settings in this table; other names are ignored."""
        return {name: self[name].parse(text) for name, text in settings.items() if name in self}
