"""Settings that change while a node runs: which may, for whom, and what is usable of what was stored. Pure.

Four layers, each over the one before it: default, static (`server.properties`), dynamic for all brokers, dynamic for this one.
What is stored came through the controller's checks, but perhaps through those of another version: what cannot be used here is
left out by name, and the rest counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker import BrokerConfig
from ottla.config.broker_keys import BROKER_KEYS, base_name
from ottla.config.keys import UpdateMode
from ottla.config.values import InvalidConfig

_CLUSTER_LEVEL_OF_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Listener settings that may be set for all brokers at once; others differ with the machine."""


def update_mode(name: str) -> UpdateMode | None:
    """How the setting may change at run time; None if there is no such setting."""
    base = base_name(name)
    if base not in BROKER_KEYS:
        return None
    mode = BROKER_KEYS[base].update_mode
    if base != name and mode is UpdateMode.CLUSTER_WIDE and base not in _CLUSTER_LEVEL_OF_LISTENERS:
        return UpdateMode.PER_BROKER
    return mode


class Layers:
    """What a node's settings are made of: the texts of each layer, and the snapshot that they come to."""

    __slots__ = ("broker", "cluster", "config", "rejected", "static")

    def __init__(
        self,
        static: Mapping[str, str],
        cluster: Mapping[str, str],
        broker: Mapping[str, str],
        hostname: str,
    ) -> None:
        """`InvalidConfig` if `static` alone cannot stand; of the dynamic layers, what cannot be used is put aside."""
        self.static = static
        self.rejected: dict[str, str] = {}
        """Dynamic settings that are left out → why."""
        self.cluster = self._usable(cluster, per_broker=False)
        """The usable settings for all brokers."""
        self.broker = self._usable(broker, per_broker=True)
        """The usable settings for this broker."""
        self.config = self._combine(hostname)

    def _usable(self, layer: Mapping[str, str], per_broker: bool) -> dict[str, str]:
        usable = {}
        for name, text in layer.items():
            mode = update_mode(name)
            if mode is None:
                self.rejected[name] = "no broker setting has this name"
            elif mode is UpdateMode.READ_ONLY:
                self.rejected[name] = "it cannot change while the node runs"
            elif mode is UpdateMode.PER_BROKER and not per_broker:
                self.rejected[name] = "it can be set only for one broker at a time"
            else:
                try:
                    BROKER_KEYS[base_name(name)].parse(text)
                except InvalidConfig as refused:
                    self.rejected[name] = str(refused)
                else:
                    usable[name] = text
        return usable

    def _combine(self, hostname: str) -> BrokerConfig:
        """The snapshot; a dynamic setting that contradicts others gives way."""
        while True:
            try:
                return BrokerConfig.from_settings({**self.static, **self.cluster, **self.broker}, hostname=hostname)
            except InvalidConfig as refused:
                culprit = self._culprit(refused)
                if culprit is None:
                    raise
                self.rejected[culprit] = str(refused)
                self.cluster.pop(culprit, None)
                self.broker.pop(culprit, None)

    def _culprit(self, refused: InvalidConfig) -> str | None:
        """Which dynamic setting to leave out: the one that the refusal is about, else any."""
        dynamic = [*self.broker, *self.cluster]
        if refused.name in dynamic:
            return refused.name
        mentioned = [name for name in dynamic if name in str(refused)]
        return mentioned[0] if mentioned else dynamic[0] if dynamic else None
