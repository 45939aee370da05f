"""The services of one node that handlers use; `node.py` and `broker_role.py` assemble them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.client_telemetry import ClientTelemetry
    from ottla.broker.fetch_sessions import FetchSessions
    from ottla.broker.membership import Membership
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.moves import Moves
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.replication.replication import Replication
    from ottla.broker.requests.authorization import Authorization
    from ottla.broker.requests.quotas import ClientQuotas
    from ottla.broker.requests.scheduler import Scheduler
    from ottla.broker.requests.schema_subjects import SchemaSubjects
    from ottla.broker.requests.throttle import Throttling
    from ottla.broker.runtime.cluster_metrics import ElectionCounter
    from ottla.broker.runtime.controller import ControllerRuntime
    from ottla.broker.runtime.coordinators.coordinators import Coordinators
    from ottla.broker.runtime.metadata_loader import MetadataLoader
    from ottla.broker.runtime.producer_ids import ProducerIds
    from ottla.broker.runtime.quorum import QuorumRuntime
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
    quorum: QuorumRuntime
    loader: MetadataLoader
    controller: ControllerRuntime
    scheduler: Scheduler
    authorization: Authorization
    throttling: Throttling
    quotas: ClientQuotas
    elections: ElectionCounter


@dataclass(slots=True, eq=False, repr=False)
class Services(NodeServices):
    """The services of a broker. Handlers reach them through `RequestContext.services`."""

    channel: ControllerChannel
    membership: Membership
    directories: LogDirectories
    partitions: Partitions
    replication: Replication
    moves: Moves
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    coordinators: Coordinators
    telemetry: ClientTelemetry | None = None
    """What clients push (KIP-714); None where no metrics are served."""
    schema_subjects: SchemaSubjects | None = None
    """What the schema registry has said; None until a topic's schema ids are checked."""
