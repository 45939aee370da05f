"""Changes to settings that Kafka 4.3.0 accepts or refuses, with its error codes. Tests send them to Apache Kafka and to Ottla.

The node under test has id 1 and a topic `t`, both without settings of their own; ELR is on, as in a fresh cluster. Every case
is only validated, so that none has an effect.
"""

from typing import NamedTuple

from ottla.errors.codes import ErrorCode
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import incremental_alter_configs as incremental

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NONE = ErrorCode.NONE
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
UNKNOWN_TOPIC, INVALID_TOPIC = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION


class Case(NamedTuple):
    """One resource's changes: (setting, operation, value). `code` is Apache Kafka's error code."""

    code: int
    type: int
    name: str
    changes: list[tuple[str, int, str | None]]

    def __str__(self) -> str:
        shown = ",".join(
            f"{key}{'=-+~'[op] if 0 <= op < 4 else '?'}{value if value is None else value[:20]}"
            for key, op, value in self.changes
        )
        return f"{self.type}:{self.name or '(all)'}:{shown}"


INCREMENTAL = [
    # Topics.
    Case(NONE, TOPIC, "t", [("retention.ms", SET, "1000")]),
    Case(NONE, TOPIC, "t", [("retention.ms", SET, "-1"), ("cleanup.policy", SET, "compact,delete")]),
    Case(NONE, TOPIC, "t", [("retention.ms", DELETE, None)]),
    Case(NONE, TOPIC, "t", [("retention.ms", DELETE, "ignored")]),
    Case(NONE, TOPIC, "t", [("cleanup.policy", APPEND, "compact")]),
    Case(NONE, TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")]),
    Case(NONE, TOPIC, "t", [("cleanup.policy", SET, "")]),
    Case(NONE, TOPIC, "t", []),
    Case(NONE, TOPIC, "t", [("min.insync.replicas", SET, "5")]),
    Case(NONE, TOPIC, "t", [("internal.segment.bytes", SET, "100")]),
    Case(NONE, TOPIC, "t", [("leader.replication.throttled.replicas", APPEND, "0:1")]),
    Case(NONE, TOPIC, "t", [("no.such.thing", DELETE, None)]),
    Case(INVALID_CONFIG, TOPIC, "t", [("no.such.thing", SET, "1")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", SET, "soon")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", SET, "-2")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", SET, "1"), ("segment.bytes", SET, "10")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("cleanup.policy", SET, "burn")]),
    Case(NONE, TOPIC, "t", [("cleanup.policy", SET, "compact,compact")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("cleanup.policy", APPEND, "burn")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", APPEND, "1")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", SUBTRACT, "1")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("no.such.thing", APPEND, "1")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("remote.storage.enable", SET, "true")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("compression.type", SET, "none")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("follower.replication.throttled.replicas", SET, "a:b")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("message.timestamp.difference.max.ms", SET, "1")]),
    Case(INVALID_REQUEST, TOPIC, "t", [("retention.ms", SET, None)]),
    Case(INVALID_REQUEST, TOPIC, "t", [("cleanup.policy", APPEND, None)]),
    Case(INVALID_REQUEST, TOPIC, "t", [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)]),
    Case(UNKNOWN_TOPIC, TOPIC, "nowhere", [("retention.ms", SET, "1")]),
    Case(INVALID_CONFIG, TOPIC, "nowhere", [("retention.ms", SET, "soon")]),
    Case(INVALID_TOPIC, TOPIC, "no such/topic", [("retention.ms", SET, "1")]),
    Case(INVALID_REQUEST, TOPIC, "", [("retention.ms", SET, "1")]),
    # Brokers.
    Case(NONE, BROKER, "1", [("log.cleaner.threads", SET, "2")]),
    Case(NONE, BROKER, "", [("log.cleaner.threads", SET, "2")]),
    Case(NONE, BROKER, "", [("log.retention.ms", SET, "5")]),
    Case(NONE, BROKER, "", [("min.insync.replicas", SET, "2")]),
    Case(NONE, BROKER, "1", [("max.connections", DELETE, None)]),
    Case(NONE, BROKER, "1", [("listener.name.plaintext.max.connections", SET, "100")]),
    Case(NONE, BROKER, "", [("listener.name.plaintext.max.connections", SET, "100")]),
    Case(NONE, BROKER, "", [("no.such.thing", SET, "1")]),
    Case(NONE, BROKER, "", [("leader.replication.throttled.rate", SET, "1000")]),
    Case(NONE, BROKER, "1", [("log.cleanup.policy", APPEND, "compact")]),
    Case(NONE, BROKER, "", [("num.io.threads", SET, "16")]),
    Case(INVALID_REQUEST, BROKER, "", [("num.io.threads", SET, "17")]),
    Case(INVALID_REQUEST, BROKER, "", [("num.network.threads", SET, "7")]),
    Case(INVALID_REQUEST, BROKER, "", [("log.cleaner.threads", SET, "3")]),
    Case(INVALID_REQUEST, BROKER, "", [("log.cleaner.threads", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "", [("num.recovery.threads.per.data.dir", SET, "5")]),
    Case(INVALID_REQUEST, BROKER, "", [("max.connections", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "1", [("listener.name.plaintext.max.connections", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "1", [("listener.name.plaintext.max.connections", SET, "x")]),
    Case(NONE, BROKER, "1", [("listener.name.plaintext.no.such.thing", SET, "x")]),
    Case(INVALID_REQUEST, BROKER, "", [("log.dirs", SET, "/elsewhere")]),
    Case(NONE, BROKER, "", [("log.roll.ms", SET, "1"), ("log.segment.bytes", SET, "1048576")]),
    Case(INVALID_REQUEST, BROKER, "", [("log.roll.ms", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "", [("compression.type", SET, "brotli")]),
    Case(NONE, BROKER, "", [("metric.reporters", SET, "")]),
    Case(INVALID_REQUEST, BROKER, "", [("num.io.threads", SET, "3")]),
    Case(INVALID_REQUEST, BROKER, "", [("num.partitions", SET, "3")]),
    Case(INVALID_REQUEST, BROKER, "1", [("num.partitions", SET, "3")]),
    Case(NONE, BROKER, "1", [("num.partitions", DELETE, None)]),
    Case(INVALID_REQUEST, BROKER, "1", [("node.id", SET, "1")]),
    Case(INVALID_REQUEST, BROKER, "1", [("log.cleaner.threads", SET, "many")]),
    Case(INVALID_REQUEST, BROKER, "1", [("log.cleaner.threads", SET, "1000")]),
    Case(INVALID_REQUEST, BROKER, "1", [("log.retention.ms", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "", [("max.connections", SET, "-1")]),
    Case(INVALID_REQUEST, BROKER, "", [("max.connections.per.ip", SET, "0")]),
    Case(INVALID_REQUEST, BROKER, "", [("listeners", SET, "PLAINTEXT://:1")]),
    Case(INVALID_REQUEST, BROKER, "1", [("listeners", SET, "OTHER://:1")]),
    Case(INVALID_REQUEST, BROKER, "", [("ssl.keystore.location", SET, "x")]),
    Case(INVALID_REQUEST, BROKER, "1", [("ssl.keystore.location", SET, "x")]),
    Case(INVALID_CONFIG, BROKER, "1", [("log.cleaner.threads", APPEND, "2")]),
    Case(INVALID_CONFIG, BROKER, "1", [("log.cleaner.threads", SUBTRACT, "2")]),
    Case(INVALID_CONFIG, BROKER, "1", [("no.such.thing", APPEND, "2")]),
    Case(INVALID_CONFIG, BROKER, "1", [("min.insync.replicas", SET, "2")]),
    Case(INVALID_CONFIG, BROKER, "", [("min.insync.replicas", DELETE, None)]),
    Case(INVALID_REQUEST, BROKER, "1", [("log.cleaner.threads", 9, "2")]),
    Case(INVALID_REQUEST, BROKER, "1", [("log.cleaner.threads", SET, None)]),
    Case(INVALID_REQUEST, BROKER, "2", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "one", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "-1", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "1", [("cordoned.log.dirs", SET, "/elsewhere")]),
    Case(INVALID_REQUEST, BROKER, "", [("cordoned.log.dirs", SET, "/elsewhere")]),
    Case(INVALID_REQUEST, BROKER, "", [("group.consumer.assignment.interval.ms", SET, "99999")]),
    # Loggers.
    Case(NONE, BROKER_LOGGER, "1", [("root", SET, "DEBUG")]),
    Case(INVALID_CONFIG, BROKER_LOGGER, "1", [("root", SET, "LOUD")]),
    Case(INVALID_CONFIG, BROKER_LOGGER, "1", [("root", SET, "debug")]),
    Case(INVALID_CONFIG, BROKER_LOGGER, "1", [("no.such.logger", SET, "DEBUG")]),
    Case(INVALID_CONFIG, BROKER_LOGGER, "1", [("no.such.logger", DELETE, None)]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "1", [("root", DELETE, None)]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "1", [("root", APPEND, "DEBUG")]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "1", [("root", SUBTRACT, "DEBUG")]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "", [("root", SET, "DEBUG")]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "2", [("root", SET, "DEBUG")]),
    # Groups.
    Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
    Case(NONE, GROUP, "g", [("consumer.assignment.interval.ms", SET, "0"), ("share.isolation.level", SET, "read_committed")]),
    Case(NONE, GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:PT1H")]),
    Case(INVALID_CONFIG, GROUP, "g", [("no.such.thing", SET, "1")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", SET, "1")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", SET, "60001")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", SET, "x")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "4999")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "15001")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.assignment.interval.ms", SET, "15001")]),
    Case(INVALID_CONFIG, GROUP, "g", [("share.delivery.count.limit", SET, "11")]),
    Case(INVALID_CONFIG, GROUP, "g", [("share.record.lock.duration.ms", SET, "60001")]),
    Case(INVALID_CONFIG, GROUP, "g", [("share.partition.max.record.locks", SET, "99")]),
    Case(INVALID_CONFIG, GROUP, "g", [("streams.num.standby.replicas", SET, "3")]),
    Case(INVALID_CONFIG, GROUP, "g", [("streams.initial.rebalance.delay.ms", SET, "-1")]),
    Case(INVALID_CONFIG, GROUP, "g", [("share.auto.offset.reset", SET, "soon")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", APPEND, "1")]),
    Case(INVALID_REQUEST, GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]),
    # Client metrics.
    Case(NONE, CLIENT_METRICS, "m", [("metrics", SET, "a."), ("interval.ms", SET, "100"), ("match", SET, "client_id=a.*")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("metrics", APPEND, "org.apache.")]),
    Case(NONE, CLIENT_METRICS, "m", [("match", SET, "client_software_name = x, client_source_port=9")]),
    Case(INVALID_REQUEST, CLIENT_METRICS, "m", [("interval.ms", SET, "99")]),
    Case(INVALID_REQUEST, CLIENT_METRICS, "m", [("interval.ms", SET, "3600001")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("interval.ms", SET, "often")]),
    Case(NONE, CLIENT_METRICS, "m", [("metrics", SET, "a,a")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("metrics", SET, "a,,b")]),
    Case(INVALID_REQUEST, CLIENT_METRICS, "m", [("no.such.thing", SET, "1")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("match", SET, "hair=red")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("match", SET, "client_id")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("match", SET, "client_id=[")]),
    Case(INVALID_CONFIG, CLIENT_METRICS, "m", [("interval.ms", APPEND, "1")]),
    Case(INVALID_REQUEST, CLIENT_METRICS, "", [("interval.ms", SET, "1000")]),
    # No such kind of resource.
    Case(INVALID_REQUEST, 3, "t", [("retention.ms", SET, "1")]),
    Case(INVALID_REQUEST, 0, "t", [("retention.ms", SET, "1")]),
]  # fmt: skip

CROSSED = (("min", "9"), ("max", "8"))

STRICTER = [
    # Apache answers with an internal error.
    Case(INVALID_REQUEST, TOPIC, "t", [("retention.ms", 9, "1")]),
    # Apache accepts it, but does not start with the same setting in its file.
    Case(INVALID_REQUEST, BROKER, "", [(f"log.cleaner.{edge}.compaction.lag.ms", SET, lag) for edge, lag in CROSSED]),
    # Apache opens another port.
    Case(INVALID_REQUEST, BROKER, "1", [("listeners", SET, "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0")]),
]  # fmt: skip
"""Changes that Ottla refuses and Apache Kafka answers differently."""

LEGACY = [
    Case(NONE, TOPIC, "t", [("retention.ms", SET, "1000")]),
    Case(NONE, TOPIC, "t", []),
    Case(INVALID_CONFIG, TOPIC, "t", [("retention.ms", SET, "soon")]),
    Case(INVALID_CONFIG, TOPIC, "t", [("no.such.thing", SET, "1")]),
    Case(INVALID_REQUEST, TOPIC, "t", [("retention.ms", SET, None)]),
    Case(INVALID_REQUEST, TOPIC, "t", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
    Case(UNKNOWN_TOPIC, TOPIC, "nowhere", [("retention.ms", SET, "1")]),
    Case(INVALID_TOPIC, TOPIC, "no such/topic", [("retention.ms", SET, "1")]),
    Case(INVALID_REQUEST, TOPIC, "", [("retention.ms", SET, "1")]),
    Case(NONE, BROKER, "1", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_CONFIG, BROKER, "", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "1", [("num.partitions", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "2", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER, "x", [("log.cleaner.threads", SET, "2")]),
    Case(INVALID_REQUEST, BROKER_LOGGER, "1", [("root", SET, "DEBUG")]),
    Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
    Case(INVALID_CONFIG, GROUP, "g", [("consumer.session.timeout.ms", SET, "1")]),
    Case(NONE, CLIENT_METRICS, "m", [("interval.ms", SET, "1000")]),
    Case(INVALID_REQUEST, CLIENT_METRICS, "m", [("interval.ms", SET, "1")]),
    Case(INVALID_REQUEST, 3, "t", [("retention.ms", SET, "1")]),
]  # fmt: skip


def incremental_request(*cases: Case, validate_only: bool = True) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=case.type,
                resource_name=case.name,
                configs=[
                    incremental.AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, operation, value in case.changes
                ],
            )
            for case in cases
        ],
        validate_only=validate_only,
    )


def legacy_request(*cases: Case, validate_only: bool = True) -> legacy.AlterConfigsRequest:
    return legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=case.type,
                resource_name=case.name,
                configs=[legacy.AlterableConfig(name=name, value=value) for name, _operation, value in case.changes],
            )
            for case in cases
        ],
        validate_only=validate_only,
    )
