"""Who is in the cluster: brokers and controllers as they registered. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid


class Endpoint(NamedTuple):
    """Where a node can be reached under the name of one of its listeners."""

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
    """Those of its directories that get no new partitions; None if it was never told."""
    is_migrating_zk_broker: bool = False
    """Only in logs of the years in which clusters left ZooKeeper."""

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be given new ones."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online_directory(self, directory: Uuid) -> bool:
        """Whether a replica in `directory` can be used, as far as the broker has told which are online."""
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
    """All of them, by id."""

    brokers: Mapping[int, BrokerRegistration] = MappingProxyType({})
    controllers: Mapping[int, ControllerRegistration] = MappingProxyType({})
