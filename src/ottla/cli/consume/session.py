"""One incremental fetch session with a broker, without IO: what to tell it, after it has been told the rest before.

The first request names every partition and asks for a session; later ones name only what has changed, and partitions that are
no longer wanted. A broker without room for a session is told everything every time. After any failure the session begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

_EPOCH_MAX = 0x7FFFFFFF


class Wanted(NamedTuple):
    """What is to be fetched of one partition."""

    topic_id: Uuid
    offset: int
    leader_epoch: int
    bytes_max: int


class FetchSession:
    """The client's side."""

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        self._told: dict[TopicPartition, Wanted] = {}

    def fill(self, request: FetchRequest, wanted: Mapping[TopicPartition, Wanted]) -> None:
        """Put into `request` what the broker does not know yet."""
        request.session_id, request.session_epoch = self.id, self.epoch
        is_new = self.epoch == 0
        topics: dict[str, FetchTopic] = {}
        for each, now in wanted.items():
            if not is_new and self._told.get(each) == now:
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
        for each, before in () if is_new else self._told.items():
            if each not in wanted:
                gone = forgotten.setdefault(each.topic, ForgottenTopic(topic=each.topic, topic_id=before.topic_id))
                gone.partitions.append(each.partition)
        request.forgotten_topics_data = list(forgotten.values())
        self._told = dict(wanted)

    def answered(self, response: FetchResponse) -> None:
        """The broker has taken the request in."""
        if response.session_id == 0:
            self.begin_anew()
        else:
            self.id = response.session_id
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def begin_anew(self) -> None:
        """The broker knows nothing, or nobody knows what it knows."""
        self.id = self.epoch = 0
        self._told = {}
