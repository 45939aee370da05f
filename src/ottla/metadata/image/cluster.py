"""The image of the registered brokers and controllers. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid


class Endpoint(NamedTuple):
    """The address of one of a node's listeners."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerRegistration(NamedTuple):
    """One broker. `epoch` is the offset of the record that registered it."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]
    """Feature → the lowest and the highest level that the broker supports."""
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]
    """Its log directories that are online, sorted."""
    cordoned_directories: tuple[Uuid, ...] | None = None
    """Those of its directories that get no new partitions; None if the broker never reported any."""
    is_migrating_zk_broker: bool = False
    """True only in old logs, of clusters that were migrating from ZooKeeper."""

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and get new replicas."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def takes_new_replicas(self) -> bool:
        """Whether a log directory is left that is not cordoned. A broker that reported no directories counts as having one."""
        return not self.directories or not set(self.directories) <= set(self.cordoned_directories or ())

    def has_online_directory(self, directory: Uuid) -> bool:
        """Whether a replica in `directory` is usable. A broker that reported no directories counts as having it online."""
        if directory == DIRECTORY_LOST:
            return False
        return directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING) or not self.directories or directory in self.directories


class ControllerRegistration(NamedTuple):
    """One controller."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]]


class ClusterImage(NamedTuple):
    """All brokers and controllers, by id."""

    brokers: Mapping[int, BrokerRegistration] = MappingProxyType({})
    controllers: Mapping[int, ControllerRegistration] = MappingProxyType({})
