"""Builds partitions as nodes hold them, and images with one partition, for the tests of checkers that look into nodes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ottla.ids import TopicPartition, Uuid
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic, TopicsImage
from ottla.sim.cluster.checkers.checker import Entry, HeldPartition

TOPIC_ID = Uuid(bytes(15) + b"\x07")
KEY = (TOPIC_ID, 0)


def entry(offset: int, epoch: int = 1, crc: int = 7) -> Entry:
    return Entry(offset, offset, epoch, crc)


def held(entries: Sequence[Entry] = (), high_watermark: int = 0, **changes: Any) -> HeldPartition:
    """A leader's partition with these batches, from offset 0 on."""
    end = entries[-1].last_offset + 1 if entries else 0
    found = HeldPartition(
        KEY,
        TopicPartition("t", 0),
        leader=1,
        leader_epoch=1,
        partition_epoch=1,
        isr=(1, 2),
        is_leading=True,
        is_compacted=False,
        log_start_offset=0,
        high_watermark=high_watermark,
        log_end_offset=end,
        entries=lambda start, stop: [each for each in entries if each.base_offset >= start and each.last_offset < stop],
    )
    return found._replace(**changes)


def state(isr: tuple[int, ...] = (1, 2), **changes: Any) -> PartitionState:
    found = PartitionState((1, 2, 3), (), isr, leader=1, leader_epoch=1, partition_epoch=1)
    return found._replace(**changes)


def image(partition: PartitionState, epochs: Mapping[int, int] | None = None) -> MetadataImage:
    """An image with one partition, and brokers with these epochs."""
    topic = Topic("t", TOPIC_ID, MappingProxyType({0: partition}))
    brokers = {
        number: BrokerRegistration(number, epoch, TOPIC_ID, {}, {}, None, False, False, ())
        for number, epoch in (epochs or {}).items()
    }
    return MetadataImage(
        topics=TopicsImage(MappingProxyType({"t": topic}), MappingProxyType({TOPIC_ID: topic})),
        cluster=ClusterImage(brokers=MappingProxyType(brokers)),
    )
