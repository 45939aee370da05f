"""The client's side of one incremental fetch session (KIP-227), without IO.

The first request names every partition and asks for a session. Later requests name only partitions that changed and partitions
to forget. If the broker grants no session, every request is full. After any failure the next request is full again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

_EPOCH_MAX = 0x7FFFFFFF


class PartitionFetch(NamedTuple):
    """From where, and how much, to fetch of one partition."""

    topic_id: Uuid
    offset: int
    leader_epoch: int
    bytes_max: int


class FetchSession:
    """What the broker's session knows, and the session id and epoch of the next request."""

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        self._sent: dict[TopicPartition, PartitionFetch] = {}

    def fill(self, request: FetchRequest, wanted: Mapping[TopicPartition, PartitionFetch]) -> None:
        """Fill `request` with the partitions that differ from what was sent before."""
        request.session_id, request.session_epoch = self.id, self.epoch
        is_new = self.epoch == 0
        topics: dict[str, FetchTopic] = {}
        for each, now in wanted.items():
            if not is_new and self._sent.get(each) == now:
                continue
            topic = topics.setdefault(each.topic, FetchTopic(topic=each.topic, topic_id=now.topic_id))
            topic.partitions.append(
                FetchPartition(
                    partition=each.partition,
                    current_leader_epoch=now.leader_epoch,
                    fetch_offset=now.offset,
                    partition_max_bytes=now.bytes_max,
                )
            )
        request.topics = list(topics.values())
        forgotten: dict[str, ForgottenTopic] = {}
        for each, before in () if is_new else self._sent.items():
            if each not in wanted:
                gone = forgotten.setdefault(each.topic, ForgottenTopic(topic=each.topic, topic_id=before.topic_id))
                gone.partitions.append(each.partition)
        request.forgotten_topics_data = list(forgotten.values())
        self._sent = dict(wanted)

    def answered(self, response: FetchResponse) -> None:
        """The broker accepted the request: move on to the next epoch."""
        if response.session_id == 0:
            self.restart()
        else:
            self.id = response.session_id
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def restart(self) -> None:
        """Make the next request a full one: the broker has no session, or its state is unknown."""
        self.id = self.epoch = 0
        self._sent = {}
