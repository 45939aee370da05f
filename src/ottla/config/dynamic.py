"""Dynamic settings: which settings may change while a node runs, and how layers of settings are merged. Pure.

Four layers, each overriding the one before it: default, static (`server.properties`), dynamic for all brokers, dynamic for this
broker. Stored dynamic settings were checked, but perhaps by another version. A setting that is invalid here is rejected by
name, and the others apply. Unknown names are kept and shown, as Kafka does for plug-ins, and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker import BrokerConfig
from ottla.config.broker_keys import BROKER_KEYS, base_name
from ottla.config.keys import UpdateMode
from ottla.config.values import InvalidConfig

_CLUSTER_LEVEL_OF_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Listener settings that may be set for all brokers at once; others depend on the machine."""

_FIRST_WINS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Synonyms in different units. The first that is set wins."""

_PER_LISTENER = frozenset(
    f"ssl.{name}"
    for name in (
        "key.password", "keystore.certificate.chain", "keystore.key", "keystore.location", "keystore.password",
        "keystore.type", "truststore.certificates", "truststore.location", "truststore.password", "truststore.type",
    )
)  # fmt: skip
"""Settings that can change at run time only for one listener."""

_COUNTS = (
    "background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)  # fmt: skip
"""Counts that may at most double or halve in one change, as in Kafka: a typo must not bring a node down."""

FIXED_HERE = ("listeners", "listener.security.protocol.map")
"""Kafka lets them change at run time; Ottla opens its ports once."""

_CLAMPED = tuple(f"group.{kind}.{{}}assignment.interval.ms" for kind in ("consumer", "share", "streams"))
"""Clamped to their bounds if the stored value is outside of them."""


def broker_synonyms(name: str) -> tuple[str, ...]:
    """`name` and its synonyms, most important first. For a listener's setting also the one for all listeners."""
    for names in _FIRST_WINS:
        if name in names:
            return names
    if name == "log.flush.interval.ms":
        return name, "log.flush.scheduler.interval.ms"
    base = base_name(name)
    return (name,) if base == name else (name, base)


def update_mode(name: str) -> UpdateMode | None:
    """How the setting may change at run time; None if it is unknown."""
    base = base_name(name)
    if base not in BROKER_KEYS:
        return None
    if base != name and base not in _CLUSTER_LEVEL_OF_LISTENERS:
        return UpdateMode.PER_BROKER
    return BROKER_KEYS[base].update_mode


def merge(*layers: Mapping[str, str]) -> dict[str, str]:
    """All settings; later layers override earlier ones. A setting also hides its synonyms in earlier layers."""
    merged: dict[str, str] = {}
    for layer in layers:
        for name, text in layer.items():
            if merged and not name.startswith("listener.name."):
                for synonym in broker_synonyms(name):
                    if synonym not in layer:
                        merged.pop(synonym, None)
            merged[name] = text
    return merged


def _fault(name: str, text: str, per_broker: bool) -> str | None:
    """Why `name` may not have the value `text` in a dynamic layer; None if it may. Looks at this setting alone."""
    mode = update_mode(name)
    if mode is None:
        return None
    if mode is UpdateMode.READ_ONLY or (name in FIXED_HERE and per_broker):
        return f"{name} cannot change while the node runs: set it in server.properties and restart"
    if name in _PER_LISTENER:
        return f"{name} can change at run time only for one listener: set listener.name.NAME.{name}"
    if mode is UpdateMode.PER_BROKER and not per_broker:
        return f"{name} can be set only for one broker at a time: name the broker"
    try:
        BROKER_KEYS[base_name(name)].parse(text)
    except InvalidConfig as refused:
        return str(refused)
    return None


class Layers:
    """The layers of a node's settings: the texts of each layer, and the snapshot of all."""

    __slots__ = ("_hostname", "broker", "cluster", "config", "rejected", "static")

    def __init__(self, static: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str], hostname: str) -> None:
        """Raises `InvalidConfig` if `static` is invalid. Invalid dynamic settings go to `rejected`."""
        self.static = static
        self._hostname = hostname
        self.rejected: dict[str, str] = {}
        """Dynamic setting that is not applied → why."""
        self.cluster = self._usable(cluster, per_broker=False)
        """The usable settings for all brokers."""
        self.broker = self._usable(broker, per_broker=True)
        """The usable settings for this broker."""
        self.config = self._combine()

    def check_change(self, layer: Mapping[str, str], *, per_broker: bool) -> BrokerConfig:
        """The snapshot if `layer` replaces this broker's dynamic settings (or those for all brokers).

        Raises `InvalidConfig` if it may not.
        """
        for name, text in layer.items():
            if (fault := _fault(name, text, per_broker)) is not None:
                raise InvalidConfig(name, fault)
            if name in FIXED_HERE:
                raise InvalidConfig(
                    name, f"{name} cannot change while an Ottla node runs: set it in server.properties and restart"
                )
        cluster, broker = (self.cluster, layer) if per_broker else (layer, self.broker)
        settings = merge(self.static, cluster, broker)
        config = BrokerConfig.from_settings(settings, hostname=self._hostname)
        before = self.settings()
        own = (name for name in (*before, *settings) if base_name(name) in _COUNTS)
        for name in dict.fromkeys((*_COUNTS, *own)):
            _check_count(name, _count(before, name), _count(settings, name))
        for limit in ("max.connections", "max.connection.creation.rate"):
            for listener in config.broker_listeners:
                if _count(settings, f"listener.name.{listener.name.lower()}.{limit}") == 0:
                    raise InvalidConfig(limit, f"{limit}=0 would refuse every connection at {listener.name}: use at least 1")
        return config

    def settings(self) -> dict[str, str]:
        """All settings that are set in any layer."""
        return self._clamped(merge(self.static, self.cluster, self.broker))

    def _usable(self, layer: Mapping[str, str], per_broker: bool) -> dict[str, str]:
        usable = {}
        for name, text in layer.items():
            fault = _fault(name, text, per_broker)
            if fault is None:
                usable[name] = text
            else:
                self.rejected[name] = fault
        return usable

    def _combine(self) -> BrokerConfig:
        """The snapshot. A dynamic setting that contradicts others is rejected."""
        while True:
            try:
                return BrokerConfig.from_settings(self.settings(), hostname=self._hostname)
            except InvalidConfig as refused:
                culprit = self._culprit(refused)
                if culprit is None:
                    raise
                self.rejected[culprit] = str(refused)
                self.cluster.pop(culprit, None)
                self.broker.pop(culprit, None)

    def _culprit(self, refused: InvalidConfig) -> str | None:
        """Which dynamic setting to reject: the one that the error is about, else one that it mentions, else any."""
        dynamic = [*self.broker, *self.cluster]
        if refused.name in dynamic:
            return refused.name
        mentioned = [name for name in dynamic if name in str(refused)]
        return mentioned[0] if mentioned else dynamic[0] if dynamic else None

    def _clamped(self, settings: dict[str, str]) -> dict[str, str]:
        for pattern in _CLAMPED:
            name = pattern.format("")
            if name in self.cluster or name in self.broker:
                least, value, most = (_count(settings, pattern.format(bound)) for bound in ("min.", "", "max."))
                if not least <= value <= most:
                    settings[name] = str(min(max(value, least), most))
        return settings


def _count(settings: Mapping[str, str], name: str) -> int:
    """The integer value of a setting in `settings`, or its default."""
    key = BROKER_KEYS[base_name(name)]
    text = settings.get(name, settings.get(key.name))
    value = key.default if text is None else key.parse(text)
    assert isinstance(value, int)
    return value


def _check_count(name: str, before: int, after: int) -> None:
    if after == before:
        return
    if after < 1:
        raise InvalidConfig(name, f"{name}={after}: must be at least 1")
    if not before // 2 <= after <= before * 2:
        raise InvalidConfig(name, f"{name}={after}: may at most double or halve at a time, and is {before} now")
