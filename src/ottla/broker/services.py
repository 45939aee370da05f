"""What handlers work with: the services of one node, put together by `node.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.fetch_sessions import FetchSessions
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.broker.hosts.coordinators.coordinators import Coordinators
    from ottla.broker.hosts.producer_ids import ProducerIds
    from ottla.broker.hosts.quorum import QuorumHost
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.moving import Moves
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.settings import BrokerSettings
    from ottla.env import World
    from ottla.log.directories.log_directories import LogDirectories


@dataclass(slots=True, eq=False, repr=False)  # not compared, and every method made costs a start
class Services:
    """One node's. Handlers reach them through their request's context."""

    node_id: int
    cluster_id: str
    world: World
    settings: BrokerSettings
    metadata: MetadataCache
    quorum: QuorumHost
    controller: ControllerHost
    directories: LogDirectories
    partitions: Partitions
    moves: Moves
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    coordinators: Coordinators
