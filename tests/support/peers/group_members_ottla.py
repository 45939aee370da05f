"""Members of groups with Ottla's own consumers: `ottla` (synchronous) and `ottla-aio`, each in a thread of its own."""

from typing import Any

from tests.support.peers.group_members import HEARTBEAT_MS, Taken
from tests.support.peers.group_members_python import POLL_S, TOPIC_REFRESH_MS, ThreadMember
from tests.support.peers.ottla_clients import Faces

STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}


class OttlaMember(ThreadMember):
    """The synchronous consumer."""

    face = "sync"

    def run(self) -> None:
        with Faces(self.face) as face:
            consumer = face.consumer(self.bootstrap, config=self._settings())
            consumer.subscribe(
                self._topics(),
                on_assigned=lambda partitions: self.note_partitions("assigned", partitions),
                on_revoked=lambda partitions: self.note_partitions("revoked", partitions),
                on_lost=lambda partitions: self.note_partitions("lost", partitions),
            )
            while not self.is_over:
                for record in consumer.poll(POLL_S):
                    self.records.append(Taken((record.topic, record.partition), record.offset, record.value.decode()))

    def _topics(self) -> Any:
        return f"^{self.options.pattern}" if self.options.pattern else list(self.options.topics)

    def _settings(self) -> dict[str, Any]:
        options = self.options
        chosen: dict[str, Any] = {
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "metadata.max.age.ms": TOPIC_REFRESH_MS,
            "reconnect.backoff.max.ms": 200,
        }
        if options.protocol == "consumer":
            chosen["group.protocol"] = "consumer"
        else:
            chosen["partition.assignment.strategy"] = STRATEGIES[options.protocol]
            chosen["session.timeout.ms"] = options.session_ms
            chosen["heartbeat.interval.ms"] = HEARTBEAT_MS
        if options.instance_id:
            chosen["group.instance.id"] = options.instance_id
        return chosen | options.more


class OttlaAioMember(OttlaMember):
    """The asyncio consumer."""

    face = "aio"
