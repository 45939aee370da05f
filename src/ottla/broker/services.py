"""The services of one node that handlers use; `node.py` and `roles/` assemble them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.doors import ControllerDoor
    from ottla.broker.fetch_sessions import FetchSessions
    from ottla.broker.hosts.cluster_metrics import ElectionCounter
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.broker.hosts.coordinators.coordinators import Coordinators
    from ottla.broker.hosts.metadata_loader import MetadataLoader
    from ottla.broker.hosts.producer_ids import ProducerIds
    from ottla.broker.hosts.quorum import QuorumHost
    from ottla.broker.membership import Membership
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.moving import Moves
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.replication.replication import Replication
    from ottla.broker.requests.scheduler import Scheduler
    from ottla.broker.settings import BrokerSettings
    from ottla.env import World
    from ottla.log.directories.log_directories import LogDirectories


@dataclass(slots=True, eq=False, repr=False)  # not compared; generating each method would cost start-up time
class NodeServices:
    """What every node has, whatever its roles. Handlers on a controller's listener use only these."""

    node_id: int
    cluster_id: str
    world: World
    settings: BrokerSettings
    metadata: MetadataCache
    quorum: QuorumHost
    loader: MetadataLoader
    controller: ControllerHost
    scheduler: Scheduler
    elections: ElectionCounter


@dataclass(slots=True, eq=False, repr=False)
class Services(NodeServices):
    """The services of a broker. Handlers reach them through `RequestContext.services`."""

    door: ControllerDoor
    membership: Membership
    directories: LogDirectories
    partitions: Partitions
    replication: Replication
    moves: Moves
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    coordinators: Coordinators
