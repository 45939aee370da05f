"""The decisions topic: reading a query's last decision, and the fence under which the next one is written.

`Ledger` reads. `Fence` is the right to write a query's decisions: a transactional producer with one id per query. Opening it
fences every earlier one, and aborts a decision that an earlier one had sent but not committed. So what is read after that stays
the last decision until this fence writes, or is fenced itself.

No thread may share these objects. A process keeps its ledger, and reads only what is new. It asks for the topic's id each time:
under another id the topic was deleted and created again, and what was read from the old one does not count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import ottla
from ottla.config.client.kinds import ADMIN, CONSUMER
from ottla.errors import KafkaError, TopicExistsError, UnknownTopicOrPartitionError
from ottla.ids import Uuid
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink.protocol import Decision, StoredDecision, UnknownDecision, decode, driver_id, encode
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Admin, Consumer, Producer

PARTITIONS = 8
"""A query's partition is a hash of its id: the number of partitions of the decisions topic must never change."""
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    # Only closed segments are compacted. Workers read the topic from its start, so it is kept small.
    "segment.bytes": 4 * 1024 * 1024,
    "segment.ms": 600_000,
    "min.cleanable.dirty.ratio": 0.1,
}
DECISION_TIMEOUT_MS = 10_000
"""How long a decision may be in transit. A driver that dies meanwhile delays readers of the same partition for that long."""
DECISION_BYTES_MAX = 16 * 1024 * 1024
"""Before compression, which leaves a sixth: about 70,000 tasks fit into the default of max.message.bytes."""
READ_TIMEOUT_S = 120.0

Settings = Mapping[str, str]


def settings_for(given: Settings, table: Any) -> dict[str, str]:
    """Those of a producer's settings that another kind of client has too."""
    return {name: value for name, value in given.items() if name in table}


def admin_of(given: Settings) -> Admin:
    """This process's Admin client for the sink's cluster."""
    return clients.admin(settings_for(given, ADMIN.table))


class Ledger:
    """The decisions topic of one cluster, as this process has read it so far."""

    def __init__(self, client: Settings, topic: str) -> None:
        self.client = dict(client)
        self.topic = topic
        self._partitions = 0
        self._topic_id: Uuid | None = None
        self._consumers: dict[int, Consumer[Any, Any]] = {}
        self._records: dict[str, tuple[bytes, int]] = {}

    def partition_of(self, query: str) -> ottla.TopicPartition | None:
        """The partition that holds a query's decisions; None if the topic did not exist when `look` was called last."""
        return ottla.TopicPartition(self.topic, crc32(query.encode()) % self._partitions) if self._partitions else None

    def read(self, query: str) -> StoredDecision | None:
        """The query's last decision, as of now. None also if the broker that was asked has not heard of the topic yet."""
        self.look()
        place = self.partition_of(query)
        return None if place is None else self.read_at(place, query)

    def read_at(self, place: ottla.TopicPartition, query: str) -> StoredDecision | None:
        """The query's last decision in a partition that is there."""
        self._read_on(place)
        record = self._records.get(query)
        return None if record is None else StoredDecision(self._decoded(query, record[0]), record[1])

    def read_all(self) -> dict[str, StoredDecision]:
        """The last decision of every query."""
        self.look()
        for number in range(self._partitions):
            self._read_on(ottla.TopicPartition(self.topic, number))
        return {query: StoredDecision(self._decoded(query, value), offset) for query, (value, offset) in self._records.items()}

    def look(self) -> bool:
        """Whether the topic is there now; if it is another one than before, forget what was read."""
        try:
            described = admin_of(self.client).describe_topics([self.topic])[self.topic]
        except UnknownTopicOrPartitionError:
            partitions, topic_id = 0, None
        else:
            partitions, topic_id = len(described.partitions), described.id
        if topic_id != self._topic_id:
            self.close()
            self._records.clear()
        self._partitions, self._topic_id = partitions, topic_id
        return partitions > 0

    def _read_on(self, place: ottla.TopicPartition) -> None:
        # The high watermark, not the last stable offset: a decision may lie behind another driver's open transaction.
        end = admin_of(self.client).list_offsets({place: "latest"})[place].offset
        consumer = self._consumers.get(place.partition)
        if consumer is None:
            settings = settings_for(self.client, CONSUMER.table) | {
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "allow.auto.create.topics": "false",
            }
            consumer = self._consumers[place.partition] = ottla.Consumer(config=settings)
            consumer.assign(place)
        deadline_s = time.monotonic() + READ_TIMEOUT_S
        while consumer.position(place) < end:
            if time.monotonic() > deadline_s:
                raise SinkError(
                    f"{place} could not be read up to offset {end} in {READ_TIMEOUT_S:g} s: is a transaction open in it? "
                    f"See ottla transactions describe-producers {place.topic}:{place.partition}"
                )
            for record in consumer.poll(timeout=0.5):
                query = (record.key or b"").decode(errors="replace")
                if record.value is None:
                    self._records.pop(query, None)
                else:
                    self._records[query] = record.value, record.offset

    def _decoded(self, query: str, value: bytes) -> Decision:
        try:
            return decode(query, value)
        except UnknownDecision as problem:
            raise SinkError(f"{self.topic}: {problem}") from None

    def create_topic(self) -> None:
        """Create the topic if it is missing; refuse one that would lose decisions."""
        if not self.look():
            new = ottla.NewTopic(self.topic, PARTITIONS, configs=TOPIC_SETTINGS)
            created = admin_of(self.client).create_topics([new])
            error = created.errors.get(self.topic)
            if error is not None and not isinstance(error, TopicExistsError):
                raise SinkError(f"the decisions topic {self.topic} could not be created: {error}") from error
        # A broker that has not heard of the topic yet must not be taken for "there is no decision".
        deadline_s = time.monotonic() + READ_TIMEOUT_S
        while not self.look():
            if time.monotonic() > deadline_s:
                raise SinkError(f"the decisions topic {self.topic} was created, but brokers do not know it: try again")
            time.sleep(0.05)
        found = admin_of(self.client).describe_configs([("topic", self.topic)])
        policy = next(iter(found.values()))["cleanup.policy"].value
        if policy != "compact":
            raise SinkError(
                f"the decisions topic {self.topic} has cleanup.policy={policy}: decisions would be deleted, and batches "
                "written twice. Set it to compact, or name another topic with the option decisionsTopic"
            )

    def close(self) -> None:
        """Close the connections."""
        for consumer in self._consumers.values():
            consumer.close(timeout=1)
        self._consumers.clear()


class Fence:
    """The right to write one query's decisions, until another fence of the query is opened."""

    def __init__(self, ledger: Ledger, query: str) -> None:
        ledger.create_topic()
        place = ledger.partition_of(query)
        assert place is not None, "create_topic has waited for it"
        self._place = place
        self._query = query
        settings = ledger.client | {
            "transactional.id": driver_id(query),
            "transaction.timeout.ms": str(DECISION_TIMEOUT_MS),
            "compression.type": "gzip",
            "max.request.size": str(DECISION_BYTES_MAX),
            "linger.ms": "0",  # a decision is one record, and the batch waits for it
        }
        self._producer: Producer[Any, Any] = ottla.Producer(config=settings)
        try:
            self._producer.init_transactions()
            self.found = ledger.read_at(self._place, query)
            self._used_s = time.monotonic()
        except BaseException:
            self.close()
            raise

    @property
    def idle_s(self) -> float:
        """How long ago it was opened, or has written last."""
        return time.monotonic() - self._used_s

    def write(self, decision: Decision) -> None:
        """Make a decision durable. If this raises, its outcome is unknown until the next fence is opened."""
        self._store(encode(decision), decision)

    def forget(self) -> None:
        """Remove the query's record."""
        self._store(None, None)

    def _store(self, value: bytes | None, decision: Decision | None) -> None:
        place = self._place
        try:
            self._producer.begin_transaction()
            delivery = self._producer.send(place.topic, value, key=self._query.encode(), partition=place.partition)
            stored = delivery.result(timeout=DECISION_TIMEOUT_MS / 1000)
            if value is not None:
                reached("decision:sent")
            self._producer.commit_transaction()
        except KafkaError as error:
            raise SinkError(
                f"the decision about query {self._query} was not written to {place}: {error}. If another run of the query is "
                "active, stop one of the two; a restart continues"
            ) from error
        self.found = None if decision is None else StoredDecision(decision, stored.offset)
        self._used_s = time.monotonic()

    def close(self) -> None:
        """Close the connections."""
        self._producer.close(timeout=1)
