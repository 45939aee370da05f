"""The metrics of the clients: Kafka's names and groups, what each is read from, and what it means.

This table is the only place that knows the names; the docs, `metrics()`, Prometheus and telemetry use it. `ABSENT` has the
names of the Java clients that are left out, with the reason; a test compares both with Apache's clients.
"""

from __future__ import annotations

from functools import cache

from ottla.client_core.metrics.registry import ClientKind, MetricRow, MetricTable
from ottla.client_core.metrics.sensor import Statistic

TOTAL, COUNT, RATE, COUNT_RATE = Statistic.TOTAL, Statistic.COUNT, Statistic.RATE, Statistic.COUNT_RATE
PER_HOUR, RATIO = Statistic.COUNT_RATE_PER_HOUR, Statistic.TIME_RATIO
AVG, MAX, MIN, LAST, AGO, GAUGE = (
    Statistic.AVG,
    Statistic.MAX,
    Statistic.MIN,
    Statistic.LAST,
    Statistic.SECONDS_AGO,
    Statistic.GAUGE,
)

_Row = tuple[str, str, Statistic, str]


def _table(group: str, tag_names: tuple[str, ...], *rows: _Row) -> MetricTable:
    return MetricTable(group, tag_names, tuple(MetricRow(*row) for row in rows))


PRODUCER = _table(
    "producer-metrics",
    (),
    ("record-send-total", "records", TOTAL, "Records sent, each sending again included."),
    ("record-send-rate", "records", RATE, "Records sent per second."),
    ("record-retry-total", "retries", TOTAL, "Records sent again after an error."),
    ("record-retry-rate", "retries", RATE, "Records sent again per second."),
    ("record-error-total", "errors", TOTAL, "Records that could not be sent."),
    ("record-error-rate", "errors", RATE, "Records per second that could not be sent."),
    ("record-queue-time-avg", "queue_time", AVG, "Milliseconds from a batch's creation to its sending, on average."),
    ("record-queue-time-max", "queue_time", MAX, "Milliseconds from a batch's creation to its sending, at most."),
    ("record-size-avg", "record_size", AVG, "Bytes of a batch's largest record before compression, on average."),
    ("record-size-max", "record_size", MAX, "Bytes of the largest record before compression."),
    ("request-latency-avg", "latency", AVG, "Milliseconds from a Produce request to its answer, on average."),
    ("request-latency-max", "latency", MAX, "Milliseconds from a Produce request to its answer, at most."),
    ("records-per-request-avg", "request_records", AVG, "Records in a Produce request, on average."),
    ("batch-size-avg", "batch_size", AVG, "Bytes of a batch as it is sent, on average."),
    ("batch-size-max", "batch_size", MAX, "Bytes of a batch as it is sent, at most."),
    ("batch-split-total", "splits", COUNT, "Batches split because they were too large for the broker."),
    ("batch-split-rate", "splits", COUNT_RATE, "Batches split per second."),
    ("compression-rate-avg", "compression", AVG, "Bytes of a batch compressed divided by uncompressed, on average."),
    ("produce-throttle-time-avg", "throttle", AVG, "Milliseconds that a broker's quota held a request back, on average."),
    ("produce-throttle-time-max", "throttle", MAX, "Milliseconds that a broker's quota held a request back, at most."),
    ("buffer-total-bytes", "", GAUGE, "The most bytes of records that wait to be sent (buffer.memory)."),
    ("buffer-available-bytes", "", GAUGE, "Bytes of buffer.memory that are free."),
    ("waiting-threads", "", GAUGE, "Callers of send() that wait for buffer.memory."),
    ("bufferpool-wait-ratio", "buffer_wait", RATIO, "The share of time that callers of send() waited for buffer.memory."),
    ("bufferpool-wait-time-ns-total", "buffer_wait", TOTAL, "Nanoseconds that callers of send() waited for buffer.memory."),
    ("buffer-exhausted-total", "exhausted", COUNT, "Records refused because buffer.memory was full for max.block.ms."),
    ("buffer-exhausted-rate", "exhausted", COUNT_RATE, "Records refused per second because buffer.memory was full."),
    ("requests-in-flight", "", GAUGE, "Requests that wait for their answers."),
    ("metadata-age", "metadata", AGO, "Seconds since the metadata was updated."),
    ("metadata-wait-time-ns-total", "metadata_wait", TOTAL, "Nanoseconds that callers waited for a topic's metadata."),
    ("flush-time-ns-total", "flush", TOTAL, "Nanoseconds spent in flush()."),
    ("txn-init-time-ns-total", "txn_init", TOTAL, "Nanoseconds spent in preparing transactions."),
    ("txn-begin-time-ns-total", "txn_begin", TOTAL, "Nanoseconds spent in beginning transactions."),
    ("txn-send-offsets-time-ns-total", "txn_send_offsets", TOTAL, "Nanoseconds spent in sending offsets to transactions."),
    ("txn-commit-time-ns-total", "txn_commit", TOTAL, "Nanoseconds spent in committing transactions."),
    ("txn-abort-time-ns-total", "txn_abort", TOTAL, "Nanoseconds spent in aborting transactions."),
)

PRODUCER_TOPIC = _table(
    "producer-topic-metrics",
    ("topic",),
    ("record-send-total", "records", TOTAL, "Records sent to the topic."),
    ("record-send-rate", "records", RATE, "Records sent to the topic per second."),
    ("byte-total", "bytes", TOTAL, "Bytes sent to the topic."),
    ("byte-rate", "bytes", RATE, "Bytes sent to the topic per second."),
    ("compression-rate", "compression", AVG, "Bytes of the topic's batches compressed divided by uncompressed, on average."),
    ("record-retry-total", "retries", TOTAL, "Records of the topic sent again after an error."),
    ("record-retry-rate", "retries", RATE, "Records of the topic sent again per second."),
    ("record-error-total", "errors", TOTAL, "Records of the topic that could not be sent."),
    ("record-error-rate", "errors", RATE, "Records of the topic per second that could not be sent."),
)

CONSUMER = _table(
    "consumer-metrics",
    (),
    ("last-poll-seconds-ago", "poll", AGO, "Seconds since the last poll."),
    ("time-between-poll-avg", "poll_gap", AVG, "Milliseconds between two polls, on average."),
    ("time-between-poll-max", "poll_gap", MAX, "Milliseconds between two polls, at most."),
    ("poll-idle-ratio-avg", "poll_idle", AVG, "The share of time spent in poll, on average; the rest is the application's."),
    ("commit-sync-time-ns-total", "commit_sync", TOTAL, "Nanoseconds spent in synchronous commits."),
    ("committed-time-ns-total", "committed", TOTAL, "Nanoseconds spent in asking for committed offsets."),
)

FETCH_MANAGER = _table(
    "consumer-fetch-manager-metrics",
    (),
    ("records-consumed-total", "records", TOTAL, "Records consumed."),
    ("records-consumed-rate", "records", RATE, "Records consumed per second."),
    ("bytes-consumed-total", "bytes", TOTAL, "Bytes of the batches consumed, as they were fetched."),
    ("bytes-consumed-rate", "bytes", RATE, "Bytes consumed per second."),
    ("fetch-total", "latency", COUNT, "Fetch requests answered."),
    ("fetch-rate", "latency", COUNT_RATE, "Fetch requests answered per second."),
    ("fetch-latency-avg", "latency", AVG, "Milliseconds from a Fetch request to its answer, waiting for records included."),
    ("fetch-latency-max", "latency", MAX, "Milliseconds from a Fetch request to its answer, at most."),
    ("fetch-size-avg", "fetch_size", AVG, "Bytes of records in the answer to a Fetch request, on average."),
    ("fetch-size-max", "fetch_size", MAX, "Bytes of records in the answer to a Fetch request, at most."),
    (
        "records-per-request-avg",
        "fetch_records",
        AVG,
        "Offsets in the answer to a Fetch request, on average; records, unless some were compacted away.",
    ),
    ("fetch-throttle-time-avg", "throttle", AVG, "Milliseconds that a broker's quota held a Fetch request back, on average."),
    ("fetch-throttle-time-max", "throttle", MAX, "Milliseconds that a broker's quota held a Fetch request back, at most."),
    ("records-lag-max", "lag", MAX, "Records between position and end of the partition that lags most."),
    ("records-lead-min", "lead", MIN, "Records between start and position of the partition nearest to losing records."),
)

FETCH_MANAGER_TOPIC = _table(
    "consumer-fetch-manager-metrics",
    ("topic",),
    ("records-consumed-total", "records", TOTAL, "Records of the topic consumed."),
    ("records-consumed-rate", "records", RATE, "Records of the topic consumed per second."),
    ("bytes-consumed-total", "bytes", TOTAL, "Bytes of the topic consumed."),
    ("bytes-consumed-rate", "bytes", RATE, "Bytes of the topic consumed per second."),
    ("fetch-size-avg", "fetch_size", AVG, "Bytes of the topic in the answer to a Fetch request, on average."),
    ("fetch-size-max", "fetch_size", MAX, "Bytes of the topic in the answer to a Fetch request, at most."),
    ("records-per-request-avg", "fetch_records", AVG, "Offsets of the topic in the answer to a Fetch request, on average."),
)

FETCH_MANAGER_PARTITION = _table(
    "consumer-fetch-manager-metrics",
    ("topic", "partition"),
    ("records-lag", "lag", LAST, "Records between the consumer's position and the end of the partition."),
    ("records-lag-avg", "lag", AVG, "Records between position and end, on average."),
    ("records-lag-max", "lag", MAX, "Records between position and end, at most."),
    ("records-lead", "lead", LAST, "Records between the start of the partition and the consumer's position."),
    ("records-lead-avg", "lead", AVG, "Records between start and position, on average."),
    ("records-lead-min", "lead", MIN, "Records between start and position, at least."),
    ("preferred-read-replica", "replica", LAST, "The replica to fetch from, if a nearer one than the leader; else -1."),
)

COORDINATOR = _table(
    "consumer-coordinator-metrics",
    (),
    ("assigned-partitions", "", GAUGE, "Partitions assigned to this consumer."),
    ("commit-total", "commit", COUNT, "Offset commits answered."),
    ("commit-rate", "commit", COUNT_RATE, "Offset commits answered per second."),
    ("commit-latency-avg", "commit", AVG, "Milliseconds from an offset commit to its answer, on average."),
    ("commit-latency-max", "commit", MAX, "Milliseconds from an offset commit to its answer, at most."),
    ("heartbeat-total", "heartbeat", COUNT, "Heartbeats answered."),
    ("heartbeat-rate", "heartbeat", COUNT_RATE, "Heartbeats answered per second."),
    ("heartbeat-response-time-max", "heartbeat", MAX, "Milliseconds from a heartbeat to its answer, at most."),
    ("last-heartbeat-seconds-ago", "heartbeat", AGO, "Seconds since the last heartbeat was answered."),
    ("join-total", "join", COUNT, "JoinGroup requests answered."),
    ("join-rate", "join", COUNT_RATE, "JoinGroup requests answered per second."),
    ("join-time-avg", "join", AVG, "Milliseconds from a JoinGroup request to its answer, on average."),
    ("join-time-max", "join", MAX, "Milliseconds from a JoinGroup request to its answer, at most."),
    ("sync-total", "sync", COUNT, "SyncGroup requests answered."),
    ("sync-rate", "sync", COUNT_RATE, "SyncGroup requests answered per second."),
    ("sync-time-avg", "sync", AVG, "Milliseconds from a SyncGroup request to its answer, on average."),
    ("sync-time-max", "sync", MAX, "Milliseconds from a SyncGroup request to its answer, at most."),
    ("rebalance-total", "rebalance", COUNT, "Rebalances completed."),
    ("rebalance-rate-per-hour", "rebalance", PER_HOUR, "Rebalances completed per hour."),
    ("rebalance-latency-total", "rebalance", TOTAL, "Milliseconds spent in rebalances."),
    ("rebalance-latency-avg", "rebalance", AVG, "Milliseconds of a rebalance, on average."),
    ("rebalance-latency-max", "rebalance", MAX, "Milliseconds of a rebalance, at most."),
    ("last-rebalance-seconds-ago", "rebalance", AGO, "Seconds since the last rebalance was completed."),
    ("failed-rebalance-total", "failed_rebalance", COUNT, "Rebalances that failed."),
    ("failed-rebalance-rate-per-hour", "failed_rebalance", PER_HOUR, "Rebalances that failed per hour."),
    ("partition-assigned-latency-avg", "assigned", AVG, "Milliseconds in the listener for assigned partitions, on average."),
    ("partition-assigned-latency-max", "assigned", MAX, "Milliseconds in the listener for assigned partitions, at most."),
    ("partition-revoked-latency-avg", "revoked", AVG, "Milliseconds in the listener for revoked partitions, on average."),
    ("partition-revoked-latency-max", "revoked", MAX, "Milliseconds in the listener for revoked partitions, at most."),
    ("partition-lost-latency-avg", "lost", AVG, "Milliseconds in the listener for lost partitions, on average."),
    ("partition-lost-latency-max", "lost", MAX, "Milliseconds in the listener for lost partitions, at most."),
)


@cache
def connection_table(kind: ClientKind) -> MetricTable:
    """All connections of a client. The group is that of the client, as in Kafka."""
    return _table(
        f"{kind}-metrics",
        (),
        ("connection-count", "", GAUGE, "Open connections."),
        ("connection-creation-total", "opened", COUNT, "Connections opened."),
        ("connection-creation-rate", "opened", COUNT_RATE, "Connections opened per second."),
        ("connection-close-total", "closed", COUNT, "Connections closed."),
        ("connection-close-rate", "closed", COUNT_RATE, "Connections closed per second."),
        ("successful-authentication-total", "authenticated", COUNT, "Connections that authenticated."),
        ("successful-authentication-rate", "authenticated", COUNT_RATE, "Connections per second that authenticated."),
        ("failed-authentication-total", "refused", COUNT, "Connections whose authentication failed."),
        ("failed-authentication-rate", "refused", COUNT_RATE, "Connections per second whose authentication failed."),
        ("successful-reauthentication-total", "reauthenticated", COUNT, "Logins on open connections that succeeded."),
        ("successful-reauthentication-rate", "reauthenticated", COUNT_RATE, "Logins on open connections per second."),
        ("reauthentication-latency-avg", "reauthenticated", AVG, "Milliseconds of a login on an open connection, on average."),
        ("reauthentication-latency-max", "reauthenticated", MAX, "Milliseconds of a login on an open connection, at most."),
        ("failed-reauthentication-total", "not_reauthenticated", COUNT, "Logins on open connections that failed."),
        (
            "failed-reauthentication-rate",
            "not_reauthenticated",
            COUNT_RATE,
            "Such logins per second that failed.",
        ),
        ("network-io-total", "network", COUNT, "Requests sent and answers received."),
        ("network-io-rate", "network", COUNT_RATE, "Requests sent and answers received per second."),
        *_TRAFFIC,
    )


@cache
def node_table(kind: ClientKind) -> MetricTable:
    """The connections to one node."""
    return _table(
        f"{kind}-node-metrics",
        ("node-id",),
        *_TRAFFIC,
        ("request-latency-avg", "latency", AVG, "Milliseconds from a request to its answer, on average."),
        ("request-latency-max", "latency", MAX, "Milliseconds from a request to its answer, at most."),
    )


_TRAFFIC: tuple[_Row, ...] = (
    ("request-total", "outgoing", COUNT, "Requests sent."),
    ("request-rate", "outgoing", COUNT_RATE, "Requests sent per second."),
    ("request-size-avg", "outgoing", AVG, "Bytes of a request, on average."),
    ("request-size-max", "outgoing", MAX, "Bytes of a request, at most."),
    ("outgoing-byte-total", "outgoing", TOTAL, "Bytes sent."),
    ("outgoing-byte-rate", "outgoing", RATE, "Bytes sent per second."),
    ("response-total", "incoming", COUNT, "Answers received."),
    ("response-rate", "incoming", COUNT_RATE, "Answers received per second."),
    ("incoming-byte-total", "incoming", TOTAL, "Bytes received."),
    ("incoming-byte-rate", "incoming", RATE, "Bytes received per second."),
)

ABSENT: dict[str, str] = {
    "io-*, select-*": "the turns of Java's network thread; an event loop has none",
    "application-event*, background-event-*, unsent-requests-*, time-between-network-thread-poll-*": (
        "the queues between the two threads of the Java consumer"
    ),
    "successful-authentication-no-reauth-total": "counts brokers that are older than Kafka 2.2",
    "txn-prepare-time-ns-total": "there is no call that only prepares a commit",
    "app-info, kafka-metrics-count": "version and number of metrics of the Java library",
}
"""Names or groups that Apache's clients have and these do not → why."""

FIXED_TABLES = (PRODUCER, PRODUCER_TOPIC, CONSUMER, FETCH_MANAGER, FETCH_MANAGER_TOPIC, FETCH_MANAGER_PARTITION, COORDINATOR)
