"""Fetch: records from many partitions, now or when there are enough of them.

The records are file ranges: they go from the page cache to the socket. A fetch that finds less than `min_bytes` is parked
(`purgatory/delayed_fetch.py`) and tried again when a partition it watches has more to read. At least one batch is always sent
from the first partition that has any, however large. The fetch session decides which partitions a request covers.

Partitions that do not exist get an error, but do not end the wait for the others. An error in reading a partition that exists,
or a log that diverges from the reader's, is answered at once.

A consumer above its quota gets an empty response, and its session does not move on (`requests/throttle.py`).

A follower that is not in sync gets nothing of throttled partitions while their quota is used up (`replication/quota.py`).

A follower reads up to the log's end. Its fetch is its acknowledgement: it has everything below the offset it asks for, in every
partition of its session, if its log does not diverge. Each request counts once (`Partition.follower_fetches`), however often
it is tried.

v5: log start offset in the response. v6: KAFKA_STORAGE_ERROR. v7: fetch sessions. v9: the client's leader epoch is checked.
v10: zstd. v11: the consumer's rack; followers answer consumers. v12: last fetched epoch; diverging epoch. v13: topic ids
instead of names. v15: replica id in the replica state, with its broker epoch. v16: endpoints of new leaders. v17: directory id
of voters, v18: high watermark of voters; neither is used here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ottla.broker.fetch_sessions import TOPIC_IDS_SINCE, Answers, FetchContext, FetchedPartition, FetchReader, Key, wanted_by
from ottla.broker.handlers.data.leader_hints import leader_hint
from ottla.broker.partitions.in_sync import NO_BROKER_EPOCH
from ottla.broker.partitions.partition import Partition
from ottla.broker.purgatory.delayed_fetch import DelayedFetch
from ottla.broker.replication.quota import portion_bytes
from ottla.broker.requests.apis import Quota
from ottla.broker.requests.context import Handled, Pending, PendingTask, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, in_slices
from ottla.broker.requests.throttle import Usage
from ottla.broker.requests.topics import session_partitions
from ottla.env import FileRange, OffLoop, Steps
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation, ReadInfo
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.broker.requests.authorization import Grants
    from ottla.broker.requests.throttle import Throttle
    from ottla.metadata.image.cluster import ClusterImage


CONSUMER = -1
FROM_FOLLOWERS_SINCE = 11
PARTITIONS_ON_LOOP = 1000
"""With more partitions than this a fetch is read in slices (`broker/requests/scheduler.py`)."""
PARTITIONS_PER_STEP = 50
PARTITION_BYTES: Final = 60
"""About what a partition adds to a response, besides its records and its topic's name."""
HINTS_SINCE = 16
REPLICA_STATE_SINCE = 15
STORAGE_ERROR_SINCE = 6
ZSTD_SINCE = 10

_HIGH_WATERMARK, _COMMITTED, _LOG_END = Isolation.HIGH_WATERMARK, Isolation.COMMITTED, Isolation.LOG_END
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(context: RequestContext, request: FetchRequest) -> Handled:
    replica_id, broker_epoch = request.replica_id, NO_BROKER_EPOCH
    if context.version >= REPLICA_STATE_SINCE:
        replica_id = CONSUMER
        if request.replica_state is not None:
            replica_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    count = len(request.topics)
    for topic in request.topics:
        count += len(topic.partitions)
    if count > PARTITIONS_ON_LOOP:
        return in_slices(context, _handle_many(context, request, replica_id, broker_epoch))
    return _handle(context, request, replica_id, broker_epoch)


def _handle_many(context: RequestContext, request: FetchRequest, replica_id: int, broker_epoch: int) -> Steps[Handled]:
    """Handle a request that names many partitions: a worker thread collects them."""
    call = partial(wanted_by, request, context.version >= TOPIC_IDS_SINCE)
    named: dict[Key, FetchedPartition] = yield OffLoop(call, SMALL_CALL_BYTES)
    return _handle(context, request, replica_id, broker_epoch, named)


def _handle(
    context: RequestContext,
    request: FetchRequest,
    replica_id: int,
    broker_epoch: int,
    named: dict[Key, FetchedPartition] | None = None,
) -> Handled:
    if replica_id >= 0 and not context.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return _refused_follower(context, request)
    begun = context.services.fetch_sessions.begin(request, context.version, FetchReader(replica_id, broker_epoch), named)
    if isinstance(begun, FetchResponse):
        return begun
    fetch = Fetch(context, begun, request, replica_id, broker_epoch)
    is_last = request.max_wait_ms <= 0
    if fetch.is_large:
        return in_slices(context, _answer_or_wait(context, request, begun, fetch, is_last))
    return fetch.answer(is_last) or _wait(context, request, begun, fetch)


def _answer_or_wait(
    context: RequestContext, request: FetchRequest, begun: FetchContext, fetch: Fetch, is_last: bool
) -> Steps[Handled]:
    answer = yield from fetch.answer_in_steps(is_last)
    return answer or _wait(context, request, begun, fetch)


def _wait(context: RequestContext, request: FetchRequest, begun: FetchContext, fetch: Fetch) -> Handled:
    """Park a fetch that has found too little."""
    sessions, is_follower = context.services.fetch_sessions, fetch.is_follower
    if begun.follower is not None:
        return DelayedFetch(fetch, (), request.max_wait_ms, is_follower=True, session=begun.follower)
    if begun.is_incremental:  # its partitions are counted with the session's
        return DelayedFetch(fetch, fetch.watched, request.max_wait_ms, is_follower=is_follower)
    count = len(begun.wanted)
    if not sessions.may_wait(count):
        return fetch.answer(is_last=True)
    return DelayedFetch(fetch, fetch.watched, request.max_wait_ms, lambda: sessions.has_waited(count), is_follower=is_follower)


def _refused_follower(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """As Kafka: the error of a denied topic in every partition. The session stays as it is, so that it begins anew."""
    asked = {((topic.topic, topic.topic_id), each.partition) for topic in request.topics for each in topic.partitions}
    for wanted in session_partitions(context, request):
        asked.add(((wanted.topic or "", wanted.topic_id), wanted.index))
    response = FetchResponse(session_id=request.session_id)
    topics: dict[tuple[str, Uuid], FetchableTopicResponse] = {}
    for key, index in sorted(asked):
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(topic=key[0], topic_id=key[1])
            response.responses.append(topic)
        topic.partitions.append(
            PartitionData(
                partition_index=index,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                records=b"",
            )
        )
    return response


def refuse(context: RequestContext, request: FetchRequest, error: KafkaError) -> Message:
    return FetchResponse(error_code=error.code)


class Fetch:
    """One fetch request, which may be tried several times."""

    __slots__ = (
        "_broker_epoch",
        "_cold",
        "_context",
        "_has_failed",
        "_is_counted",
        "_isolation",
        "_left_bytes",
        "_max_bytes",
        "_min_bytes",
        "_plan",
        "_rack",
        "_replica_id",
        "_rule",
        "_throttled_bytes",
        "_total_bytes",
        "_version",
        "missing_bytes",
    )

    def __init__(
        self, context: RequestContext, plan: FetchContext, request: FetchRequest, replica_id: int, broker_epoch: int
    ) -> None:
        self._context = context
        self._plan = plan
        self._version = context.version
        self._replica_id = replica_id
        self._broker_epoch = broker_epoch
        self._is_counted = replica_id < 0
        """Whether the request has counted as a follower's acknowledgement."""
        config = context.services.settings.current
        self._max_bytes = min(request.max_bytes, config.fetch_max_bytes)
        self._rule = context.services.throttling.rule if replica_id < 0 else None
        """What slows down the client, if that can be."""
        if replica_id >= 0:
            context.throttle_ms = 0  # replicas have a quota of their own
        elif self._rule is not None:
            self._max_bytes = min(
                self._max_bytes, self._rule.fetch_bytes_max(context.connection.principal.name, context.client_id)
            )
        self._rack = ""
        """The consumer's rack, if this node sends consumers to replicas near them."""
        if request.rack_id and replica_id == CONSUMER and config.replica_selector_class == RACK_AWARE:
            self._rack = request.rack_id
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        if replica_id == CONSUMER:
            self._isolation = _COMMITTED if request.isolation_level == 1 else _HIGH_WATERMARK
        else:
            self._isolation = _LOG_END
        self._cold: list[tuple[Partition, str, FetchedPartition, PartitionData]] = []
        self._left_bytes, self._total_bytes, self._has_failed = self._max_bytes, 0, False
        self._throttled_bytes = 0
        """The bytes of throttled partitions in the response."""
        self.missing_bytes = 0

    @property
    def is_follower(self) -> bool:
        """Whether a replica fetches, not a consumer."""
        return self._replica_id >= 0

    @property
    def is_large(self) -> bool:
        """Whether it has so many partitions that they are read in slices."""
        return len(self._plan.to_read) > PARTITIONS_ON_LOOP

    def answer(self, is_last: bool) -> Message | Pending | None:
        """Read all partitions of the request; None if there are fewer than `min_bytes` and it is worth waiting for more.

        One with many partitions is always answered: reading all of them over and over would cost more than a short response.
        """
        if self.is_large:
            return in_slices(self._context, self.answer_in_steps(is_last=True))
        while True:
            # Copied: counting a fetch may answer producers, and their next requests may append.
            all_wanted = [*self._plan.to_read]
            end = 0 if self._is_counted else sum(map(self._end, all_wanted))
            is_first = not self._is_counted
            answers: Answers = []
            unknown: Answers = []
            self._begin()
            self._read_each(all_wanted, answers, unknown)
            is_news = is_first and (len(self._plan.to_read) > len(all_wanted) or end != sum(map(self._end, all_wanted)))
            answer = self._concluded(answers, unknown, is_last)
            if answer is not None or not is_news:
                return answer

    def answer_in_steps(self, is_last: bool) -> Steps[Message | Pending | None]:
        """Like `answer`, a few partitions at a time."""
        answers: Answers = []
        unknown: Answers = []
        self._begin()
        all_wanted = list(self._plan.to_read)
        ends: list[int] = []
        for start in range(0, len(all_wanted), PARTITIONS_PER_STEP):
            few = all_wanted[start : start + PARTITIONS_PER_STEP]
            self._read_each(few, answers, unknown)
            ends += map(self._end, few)
            yield None
        # What was appended since its partition was read wakes nobody: the fetch does not watch it yet.
        is_news = not is_last and (len(self._plan.to_read) > len(ends) or ends != list(map(self._end, all_wanted)))
        return self._concluded(answers, unknown, is_last or is_news)

    def _denied(self, grants: Grants, wanted: FetchedPartition) -> KafkaError | None:
        """The refusal if the consumer may not read the partition's topic; an id that no topic has is refused as that."""
        name = wanted.topic
        if name is None:
            topic = self._context.services.metadata.topic_by_id(wanted.topic_id)
            if topic is None:
                return None
            name = topic.name
        if grants.allows(Operation.READ, ResourceType.TOPIC, name, ApiKey.FETCH):
            return None
        return grants.refusal(Operation.READ, ResourceType.TOPIC, name)

    def _end(self, wanted: FetchedPartition) -> int:
        """Where the reader's view of a partition ends; -1 if it is not here."""
        if wanted.partition is None:
            return -1
        log = wanted.partition.log
        return log.log_end_offset if self._isolation is _LOG_END else log.high_watermark

    def _begin(self) -> None:
        self._cold = []
        self._left_bytes, self._total_bytes, self._has_failed = self._max_bytes, 0, False
        self._throttled_bytes = 0

    def _read_each(self, all_wanted: Iterable[FetchedPartition], answers: Answers, unknown: Answers) -> None:
        """Read partitions; what they answer goes to `answers`, for those that are not here to `unknown`."""
        left_bytes, total_bytes, has_failed = self._left_bytes, self._total_bytes, self._has_failed
        is_incremental, is_consumer = self._plan.is_incremental, self._isolation is not _LOG_END
        # Of a consumer; what a follower needs is checked for the whole request. Asked for anew in every try.
        grants = self._context.grants if is_consumer else None
        for wanted in all_wanted:
            if grants is not None and (denied := self._denied(grants, wanted)) is not None:
                unknown.append((wanted, self._failed(wanted, denied)))
                continue
            partition, is_counted = wanted.partition, self._is_counted
            if partition is None or not partition.is_leading:
                try:
                    partition = self._resolve(wanted)
                except KafkaError as error:
                    data = self._failed(wanted, error)
                    data.aborted_transactions = []
                    unknown.append((wanted, data))
                    has_failed = has_failed or error.code not in _UNKNOWN
                    continue
            if (
                (wanted.last_fetched_epoch < 0 or wanted.agreed_epoch == partition.leader_epoch)
                and (wanted.leader_epoch < 0 or wanted.leader_epoch == partition.leader_epoch)
                and partition.is_leading
                and wanted.partition is partition
                and not self._rack
            ):
                # Nothing to read, or no room for it: in a fetch of many partitions nearly all end here, so this is cheap.
                log, offset = partition.log, wanted.fetch_offset
                if not is_counted and (refusal := self._count(partition, wanted)) is not None:
                    answers.append((wanted, self._failed(wanted, refusal)))
                    has_failed = True
                    continue
                high_watermark = log.high_watermark
                if offset == (high_watermark if is_consumer else log.log_end_offset) or (
                    total_bytes and left_bytes <= 0 and log.log_start_offset <= offset <= log.log_end_offset
                ):
                    if (
                        high_watermark != wanted.sent_high_watermark
                        or log.log_start_offset != wanted.sent_log_start
                        or not is_incremental
                    ):
                        answers.append((wanted, self._nothing(wanted.index, log)))
                    continue
                is_counted = True
            data = self._read(partition, wanted, left_bytes, not total_bytes, is_counted)
            answers.append((wanted, data))
            if data.records is not None and (length := len(data.records)):
                total_bytes += length
                left_bytes -= length
            elif data.error_code or data.diverging_epoch is not None or data.preferred_read_replica >= 0:
                has_failed = True
        self._left_bytes, self._total_bytes, self._has_failed = left_bytes, total_bytes, has_failed

    def _concluded(self, answers: Answers, unknown: Answers, is_last: bool) -> Message | Pending | None:
        self._is_counted = True
        total_bytes, follower = self._total_bytes, self._plan.follower
        if is_last or self._has_failed or total_bytes >= self._min_bytes or len(unknown) == len(self._plan.wanted):
            response = self._finish(answers + unknown)
            if follower is not None:
                follower.rest()
            return response
        if follower is not None:
            follower.rest()
        # A transaction's commit releases records that were appended long before: any new bytes may be enough.
        self.missing_bytes = self._min_bytes - total_bytes if self._isolation is not _COMMITTED else 0
        return None

    @property
    def watched(self) -> list[Partition]:
        """The partitions whose changes may change the response."""
        return [wanted.partition for wanted in self._plan.wanted.values() if wanted.partition is not None]

    def _finish(self, answers: Answers) -> Message | Pending:
        if self._rule is not None and self._is_slowed(self._rule, answers):
            return self._plan.refused()
        response = self._plan.finish(answers)
        if self._throttled_bytes:
            services = self._context.services
            services.replication.leader_quota.record(self._throttled_bytes, services.scheduler.now_s())
        if self._version >= HINTS_SINCE:
            for wanted, data in answers:
                if data.error_code in _LEADER_MOVED:
                    self._hint(response, wanted, data)
        return PendingTask(self._warmed(response)) if self._cold else response

    def _is_slowed(self, rule: Throttle, answers: Answers) -> bool:
        """Whether the client is above its quota, and gets no records."""
        context = self._context
        reply_bytes = self._total_bytes + sum(PARTITION_BYTES + len(wanted.topic or "") for wanted, _ in answers)
        now_s = context.services.scheduler.now_s()
        time_s = context.held_s or now_s - context.received_s
        connection = context.connection
        usage = Usage(connection, context.client_id, Quota.FETCH, 0, reply_bytes, time_s, now_s)
        context.throttle_ms = rule.delay_ms(usage)
        return context.throttle_ms > 0

    async def _warmed(self, response: FetchResponse) -> Message:
        """The response, once all its records are in the page cache."""
        cold_reads = self._context.services.partitions.cold_reads
        for partition, folder, wanted, data in self._cold:
            try:
                await cold_reads.warm(cast("FileRange", data.records))
            except OSError as error:
                if partition.log.folder == folder:
                    refusal = partition.refused_by(partition.log.fail(error))
                else:  # it has moved to another disk since, which did not fail
                    refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{folder} cannot be read: {error}. Ask again")
                self._set_failed(data, refusal)
                wanted.note_sent(data)
        return response

    # Lookup

    def _resolve(self, wanted: FetchedPartition) -> Partition:
        """This node's partition of that name or topic id; raises a `KafkaError` if there is none."""
        services, follower = self._context.services, wanted.follower
        if follower is not None:
            follower.unwatch(wanted)
        wanted.partition = None
        if wanted.topic is None:
            topic = services.metadata.topic_by_id(wanted.topic_id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {uuid_text(wanted.topic_id)}")
            wanted.topic = topic.name
        found = services.partitions.find(wanted.topic, wanted.index)
        if found is None:
            raise services.partitions.reason_missing(wanted.topic, wanted.index)
        if wanted.topic_id in (ZERO_UUID, found.topic_id):
            wanted.partition = found
            if follower is not None:
                follower.watch(wanted)
        return found

    # Reading

    def _read(
        self, partition: Partition, wanted: FetchedPartition, left_bytes: int, is_first: bool, is_counted: bool
    ) -> PartitionData:
        """The response for one partition, with all checks."""
        try:
            if wanted.partition is None:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"{partition.name} has the topic id {uuid_text(partition.topic_id)} now, not {uuid_text(wanted.topic_id)}",
                )
            may_follow = self._replica_id == CONSUMER and self._version >= FROM_FOLLOWERS_SINCE
            partition.check_leading(max(wanted.leader_epoch, -1), may_follow)  # in a fetch every negative epoch means none
            if self._version < ZSTD_SINCE and partition.log.config.compression_type == "zstd":
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"{partition.name} uses zstd, which Fetch version {self._version} does not support: update the client",
                )
            if wanted.last_fetched_epoch >= 0:
                diverging = partition.diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset)
                if diverging is not None:
                    data = self._nothing(wanted.index, partition.log)
                    data.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                    return data
                wanted.agreed_epoch = partition.leader_epoch
            if not is_counted and (refusal := self._count(partition, wanted)) is not None:
                raise refusal
            if self._rack and partition.is_leading:
                cluster = self._context.services.metadata.image.cluster
                nearest = nearest_replica(partition, cluster, self._rack, wanted.fetch_offset)
                if nearest >= 0:
                    data = self._nothing(wanted.index, partition.log)
                    data.preferred_read_replica = nearest
                    return data
            max_bytes = min(wanted.max_bytes, left_bytes)
            is_throttled = self._replica_id >= 0 and self._is_throttled(partition)
            if is_throttled and (max_bytes := min(max_bytes, self._portion(partition))) <= 0:
                return self._nothing(wanted.index, partition.log)
            info = partition.read(wanted.fetch_offset, max_bytes, self._isolation, is_first)
        except KafkaError as error:
            return self._failed(wanted, error)
        data = self._found(wanted.index, info)
        if self._replica_id < 0 and data.records:
            partition.fetches += 1
            partition.fetched_bytes += len(data.records)
        if is_throttled:
            self._throttled_bytes += len(data.records or b"")
        if self._context.services.partitions.cold_reads.is_cold(partition.log, info):
            self._cold.append((partition, partition.log.folder, wanted, data))
        return data

    def _is_throttled(self, partition: Partition) -> bool:
        """Whether leader.replication.throttled.replicas of its topic lists the partition."""
        setting = partition.log.config.leader_replication_throttled_replicas
        if not setting:
            return False
        services = self._context.services
        return services.replication.leader_quota.lists(partition.topic, partition.index, services.node_id, setting)

    def _portion(self, partition: Partition) -> int:
        """How many bytes of a throttled partition may be sent now; any number if the follower is in sync."""
        if self._replica_id in partition.isr:
            return self._max_bytes
        services = self._context.services
        rate = services.settings.current.leader_replication_throttled_rate
        allowance_bytes = services.replication.leader_quota.allowance(rate, services.scheduler.now_s())
        return portion_bytes(rate) if allowance_bytes > self._throttled_bytes else 0

    def _count(self, partition: Partition, wanted: FetchedPartition) -> KafkaError | None:
        """Count a follower's fetch as its acknowledgement of everything below; why it does not count, if it does not."""
        try:
            partition.follower_fetches(self._replica_id, wanted.fetch_offset, wanted.log_start_offset, self._broker_epoch)
        except KafkaError as refusal:
            if wanted.leader_epoch < 0 and refusal.code == ErrorCode.UNKNOWN_LEADER_EPOCH:
                return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(refusal))
            return refusal
        return None

    def _found(self, index: int, info: ReadInfo) -> PartitionData:
        data = PartitionData()
        data.partition_index = index
        data.high_watermark = info.high_watermark
        data.last_stable_offset = info.last_stable_offset
        data.log_start_offset = info.log_start_offset
        aborted = info.aborted
        if aborted is None:
            data.aborted_transactions = None
        elif aborted:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in aborted
            ]
        # A batch that does not fit is not sent in part: no reader could use its beginning.
        data.records = b"" if info.records is None or info.first_batch_incomplete else info.records
        return data

    def _nothing(self, index: int, log: PartitionLog) -> PartitionData:
        data = PartitionData()
        data.partition_index = index
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.log_start_offset
        if self._isolation is not _COMMITTED:
            data.aborted_transactions = None
        data.records = b""
        return data

    # Errors

    def _failed(self, wanted: FetchedPartition, error: KafkaError) -> PartitionData:
        data = PartitionData()
        data.partition_index = wanted.index
        self._set_failed(data, error)
        return data

    def _set_failed(self, data: PartitionData, error: KafkaError) -> None:
        code = error.code
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._version < STORAGE_ERROR_SINCE:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # makes old clients look for the leader again
        data.error_code = code
        data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
        data.aborted_transactions = None
        data.records = b""

    def _hint(self, response: FetchResponse, wanted: FetchedPartition, data: PartitionData) -> None:
        hint = leader_hint(self._context, wanted.topic or "", wanted.index)
        data.current_leader = LeaderIdAndEpoch(leader_id=hint.leader, leader_epoch=hint.leader_epoch)
        if hint.host is not None and all(node.node_id != hint.leader for node in response.node_endpoints):
            response.node_endpoints.append(NodeEndpoint(node_id=hint.leader, host=hint.host, port=hint.port, rack=hint.rack))


RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
THIS_LEADER: Final = -1


def nearest_replica(partition: Partition, cluster: ClusterImage, rack: str, offset: int) -> int:
    """The replica in `rack` that has `offset` and is furthest; `THIS_LEADER` if this leader is in the rack, or no other is.

    Only replicas in the ISR: behind one that lags, consumers would lag too, and be sent there again and again.
    """
    in_sync = partition.in_sync
    own = cluster.brokers.get(partition.node_id)
    if in_sync is None or (own is not None and own.rack == rack):
        return THIS_LEADER
    best, best_end = THIS_LEADER, -1
    for each, state in in_sync.remote.items():
        broker, end = cluster.brokers.get(each), in_sync.ends.get(each, -1)
        is_near = broker is not None and broker.is_active and broker.rack == rack
        if is_near and each in partition.isr and 0 <= state.log_start_offset <= offset <= end and end > best_end:
            best, best_end = each, end
    return best
