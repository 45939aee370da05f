"""ControllerState: all that the controller decides from, at the newest record it has appended.

The image is what the log says, committed or not; records are replayed into it as soon as they are appended, so that the next
decision builds on them. When an append fails, drop the state and load the log anew. Besides the image there are the brokers'
sessions, which are never in the log and the only thing that a decision may change by itself.

Pure: no clock, no task, no IO. Chance comes through `randomness`, time through `now_ms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ottla.config.topic import LogConfig
from ottla.metadata.controller.sessions import BrokerSessions
from ottla.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, SUPPORTED_FEATURES
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import RegisterBrokerRecord, UnregisterBrokerRecord

if TYPE_CHECKING:
    from ottla.env.world import Randomness


class ControllerSettings(NamedTuple):
    """What the controller takes from its node's settings."""

    cluster_id: str
    node_id: int
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    session_timeout_ms: int = 9000
    """broker.session.timeout.ms"""
    static: Mapping[str, str] = MappingProxyType({})
    """The node's settings as texts, for what topics fall back to."""
    topic_defaults: LogConfig = LogConfig()
    """The same as a snapshot: what new settings of a topic are checked against."""
    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES


class ControllerState:
    """The newest image, and what is known besides."""

    def __init__(
        self, settings: ControllerSettings, randomness: Randomness, image: MetadataImage | None = None, kraft_version: int = 1
    ) -> None:
        self.settings = settings
        self.randomness = randomness
        self.image = image or MetadataImage()
        self.sessions = BrokerSessions(settings.session_timeout_ms)
        self.kraft_version = kraft_version
        """The quorum's own feature; it is in control records, which the quorum reads, and so not in the image."""
        self.quorum_node_ids: Sequence[int] = (settings.node_id,)
        """The voters of the quorum: controllers that must support a feature before it is finalised."""
        self.next_offset = self.image.provenance.offset + 1
        """Where the next record goes. The owner sets it after control records, which the state does not see."""
        self._registration_offsets: dict[int, int] = {}

    @property
    def elr_enabled(self) -> bool:
        """Whether replicas that left the ISR in good order are remembered as eligible leaders."""
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def replay(self, records: Sequence[Message], offset: int, epoch: int, timestamp_ms: int) -> None:
        """Take in records that are in the log from `offset` on; both those just appended and those of a load."""
        if not records:
            return
        delta = MetadataDelta(self.image)
        for at, record in enumerate(records, start=offset):
            delta.replay(record)
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = at
            elif isinstance(record, UnregisterBrokerRecord):
                self._registration_offsets.pop(record.broker_id, None)
                self.sessions.forget(record.broker_id)
        last = offset + len(records) - 1
        self.image = delta.finish(Provenance(last, epoch, timestamp_ms))
        self.next_offset = last + 1

    def activate(self, now_ms: int) -> None:
        """This controller has become the active one: brokers have the time of a session to be heard, or are fenced.

        Its own node's broker is not waited for: whoever held that id before has left the directory to this process.
        """
        for broker in self.image.cluster.brokers.values():
            if not broker.fenced and broker.id != self.settings.node_id:
                self.sessions.expect(broker.id, broker.epoch, now_ms)

    def registration_offset(self, broker_id: int) -> int:
        """The offset a broker must have read up to before it may be let in: that of its registration."""
        return self._registration_offsets.get(broker_id, self.image.cluster.brokers[broker_id].epoch)
