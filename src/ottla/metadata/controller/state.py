"""ControllerState: the state that controller decisions read, up to the newest appended record.

The image includes uncommitted records: they are replayed as soon as they are appended, so that the next decision builds on
them. When an append fails, drop the state and load the log again. Broker sessions are never in the log; they are the only thing
that a decision may change directly.

Pure: no clock, no task, no IO. Random numbers come from `randomness`, the time from `now_ms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.topic import LogConfig
from ottla.metadata.controller.sessions import BrokerSessions
from ottla.metadata.delegation_tokens import TokenIds, TokenSettings
from ottla.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, SUPPORTED_FEATURES
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import RegisterBrokerRecord, UnregisterBrokerRecord

if TYPE_CHECKING:
    from ottla.env.world import Randomness


class ControllerSettings(NamedTuple):
    """The settings of the node that the controller uses."""

    cluster_id: str
    node_id: int
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    session_timeout_ms: int = 9000
    """broker.session.timeout.ms"""
    leader_balance_interval_ms: int | None = 300_000
    """leader.imbalance.check.interval.seconds; None without auto.leader.rebalance.enable."""
    unclean_election_interval_ms: int = 300_000
    """unclean.leader.election.interval.ms"""
    static: Mapping[str, str] = MappingProxyType({})
    """The node's settings as text; topics fall back to them."""
    topic_defaults: LogConfig = LogConfig()
    """The node's defaults for topics; new settings of a topic are validated together with them."""
    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES
    tokens: TokenSettings = TokenSettings()


class ControllerState:
    """The newest image, the broker sessions and the quorum's voters."""

    def __init__(
        self, settings: ControllerSettings, randomness: Randomness, image: MetadataImage | None = None, kraft_version: int = 1
    ) -> None:
        self.settings = settings
        self.randomness = randomness
        self.image = image or MetadataImage()
        self.sessions = BrokerSessions(settings.session_timeout_ms)
        self.kraft_version = kraft_version
        """The finalised kraft.version. The quorum reads it from control records, so it is not in the image."""
        self.kraft_upgrade_refusal: str | None = "the controller is not connected to a quorum"
        """Why the quorum cannot raise kraft.version; None if it can. Its host sets this before a decision on features."""
        self.quorum_node_ids: Sequence[int] = (settings.node_id,)
        """The voters of the quorum. All of them must support a feature level before it is finalised."""
        self.next_offset = self.image.provenance.offset + 1
        """The offset of the next record. The owner also sets it after control records, which the state does not see."""
        self.unix_ms = 0
        """The time since 1970, for what is in records and outlives this process. Its host sets it before a decision."""
        self.token_ids = TokenIds()
        self._registration_offsets: dict[int, int] = {}

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept: replicas that left the ISR but hold all committed records."""
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def replay(self, records: Sequence[Message], offset: int, epoch: int, timestamp_ms: int) -> None:
        """Apply records that are in the log from `offset` on, just appended or loaded."""
        if records:
            self.take(replayed(self.image, records, offset, epoch, timestamp_ms), records, offset)

    def take(self, image: MetadataImage, records: Sequence[Message], offset: int) -> None:
        """Go on with `image`, which is the one before with `records` replayed."""
        for at, record in enumerate(records, start=offset):
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = at
            elif isinstance(record, UnregisterBrokerRecord):
                self._registration_offsets.pop(record.broker_id, None)
                self.sessions.forget(record.broker_id)
        self.image = image
        self.next_offset = offset + len(records)

    def activate(self, now_ms: int, own_broker_epoch: int = -1) -> None:
        """This controller has become the active one: each unfenced broker gets a new session to send a heartbeat in.

        The broker of its own node gets one only under `own_broker_epoch`, its registration by this process. The process that
        registered it before is gone: this one holds the directory's lock.
        """
        for broker in self.image.cluster.brokers.values():
            is_gone = broker.id == self.settings.node_id and broker.epoch != own_broker_epoch
            if not broker.fenced and not is_gone:
                self.sessions.expect(broker.id, broker.epoch, now_ms)

    def registration_offset(self, broker_id: int) -> int:
        """The offset that a broker must have read before it is unfenced: that of its registration."""
        return self._registration_offsets.get(broker_id, self.image.cluster.brokers[broker_id].epoch)


def replayed(image: MetadataImage, records: Sequence[Message], offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
    """`image` with the records applied that are in the log from `offset` on."""
    delta = MetadataDelta(image)
    delta.replay_all(records)
    return delta.finish(Provenance(offset + len(records) - 1, epoch, timestamp_ms))
