"""The topic settings: Kafka 4.3's names, types, defaults and rules, with our own documentation.

`TOPIC_SYNONYMS` names the broker settings that are a topic setting's default. The first that is set wins. The number is the
factor from the broker's unit to the topic's.
"""

from ottla.config.keys import ConfigKey, ConfigTable, Importance
from ottla.config.values import (
    LONG_MAX,
    ConfigType,
    Rule,
    Value,
    at_least,
    between,
    between_or,
    one_of,
    throttled_replicas,
    words_from,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MINUTE_MS = 60_000


def _key(
    name: str,
    type_: ConfigType,
    default: Value,
    rule: Rule | None,
    documentation: str,
    internal: bool = False,
    distinct: bool = False,
) -> ConfigKey:
    return ConfigKey(name, type_, default, rule, Importance.MEDIUM, documentation, internal=internal, distinct=distinct)


_BOOLEAN, _DOUBLE, _INT = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT
_LIST, _LONG, _STRING = ConfigType.LIST, ConfigType.LONG, ConfigType.STRING

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_STRATEGY_NAMES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
SUBJECT_STRATEGIES = (*(f"io.confluent.kafka.serializers.subject.{name}" for name in _STRATEGY_NAMES), *_STRATEGY_NAMES)
"""Confluent's spellings, and the same without the package."""

CONFLUENTS = "confluent."
"""Settings that Apache Kafka does not have: Confluent Server's. They are shown where they are set."""

TOPIC_KEYS = ConfigTable(
    "topic",
    [
        _key(
            "cleanup.policy",
            _LIST,
            ("delete",),
            words_from("compact", "delete"),
            "How old records are removed: `delete` drops whole segments by age and size, `compact` keeps the last record of "
            "every key, both together do both. Empty keeps everything until it is deleted by hand.",
            distinct=True,
        ),
        _key(
            "compression.gzip.level",
            _INT,
            -1,
            between_or(1, 9, -1),
            "The compression level when the broker compresses with gzip; -1 is gzip's default.",
        ),
        _key("compression.lz4.level", _INT, 9, between(1, 17), "The compression level when the broker compresses with lz4."),
        _key(
            "compression.type",
            _STRING,
            "producer",
            one_of(*COMPRESSION_TYPES),
            "What batches are compressed with on disk. `producer` stores them as they came; any other codec makes the broker "
            "recompress every batch that arrives in a different one.",
        ),
        _key(
            "compression.zstd.level",
            _INT,
            3,
            between(-131072, 22),
            "The compression level when the broker compresses with zstd.",
        ),
        _key(
            "confluent.key.schema.validation",
            _BOOLEAN,
            False,
            None,
            "Refuse records whose key does not say by which schema it was written, or names one that the schema registry does "
            "not have under a subject of this topic. Records without a key pass. As Confluent Server's.",
            internal=True,
        ),
        _key(
            "confluent.key.subject.name.strategy",
            _STRING,
            SUBJECT_STRATEGIES[0],
            one_of(*SUBJECT_STRATEGIES),
            "Which subjects the schemas of keys may be in: those of the topic (`topic-key`), of the record's full name "
            "(`...RecordNameStrategy`), or of both (`topic-name`, `...TopicRecordNameStrategy`).",
            internal=True,
        ),
        _key(
            "confluent.value.schema.validation",
            _BOOLEAN,
            False,
            None,
            "The same for values. Records without a value (tombstones) pass.",
            internal=True,
        ),
        _key(
            "confluent.value.subject.name.strategy",
            _STRING,
            SUBJECT_STRATEGIES[0],
            one_of(*SUBJECT_STRATEGIES),
            "The same as confluent.key.subject.name.strategy, for values: `topic-value` by default.",
            internal=True,
        ),
        _key(
            "delete.retention.ms",
            _LONG,
            DAY_MS,
            at_least(0),
            "How long a compacted topic keeps the tombstone of a deleted key, once the key's older values are gone. A reader "
            "that takes longer to read the whole topic can miss that the key was deleted.",
        ),
        _key(
            "file.delete.delay.ms",
            _LONG,
            MINUTE_MS,
            at_least(0),
            "How long a deleted segment's files stay on disk under another name, so that running reads can finish.",
        ),
        _key(
            "flush.messages",
            _LONG,
            LONG_MAX,
            at_least(1),
            "Sync the log to the device after this many records. Replication normally protects records; a low number is slow.",
        ),
        _key(
            "flush.ms",
            _LONG,
            LONG_MAX,
            at_least(0),
            "Sync the log to the device when records have waited this long. Replication normally protects records.",
        ),
        _key(
            "follower.replication.throttled.replicas",
            _LIST,
            (),
            throttled_replicas,
            "Replicas that the follower's replication quota throttles: partition:broker pairs, or * for all.",
        ),
        _key(
            "index.interval.bytes",
            _INT,
            4096,
            at_least(0),
            "How many bytes of log lie between two index entries. Fewer make lookups faster and indexes larger.",
        ),
        _key(
            "internal.segment.bytes",
            _INT,
            None,
            None,
            "Overrides segment.bytes, without its lower bound. For tests.",
            internal=True,
        ),
        _key(
            "leader.replication.throttled.replicas",
            _LIST,
            (),
            throttled_replicas,
            "Replicas that the leader's replication quota throttles: partition:broker pairs, or * for all.",
        ),
        _key(
            "local.retention.bytes",
            _LONG,
            -2,
            at_least(-2),
            "With tiered storage, how many bytes of a partition stay on the broker; -2 means the same as retention.bytes.",
        ),
        _key(
            "local.retention.ms",
            _LONG,
            -2,
            at_least(-2),
            "With tiered storage, how long segments stay on the broker; -2 means the same as retention.ms.",
        ),
        _key(
            "max.compaction.lag.ms",
            _LONG,
            LONG_MAX,
            at_least(1),
            "The longest a record of a compacted topic may wait for compaction, even below min.cleanable.dirty.ratio.",
        ),
        _key(
            "max.message.bytes",
            _INT,
            1048588,
            at_least(0),
            "The largest record batch that the topic accepts, in bytes after compression.",
        ),
        _key(
            "message.timestamp.after.max.ms",
            _LONG,
            HOUR_MS,
            at_least(0),
            "How far ahead of the broker's clock a record's own timestamp may be before its batch is refused.",
        ),
        _key(
            "message.timestamp.before.max.ms",
            _LONG,
            LONG_MAX,
            at_least(0),
            "How far behind the broker's clock a record's own timestamp may be before its batch is refused.",
        ),
        _key(
            "message.timestamp.type",
            _STRING,
            "CreateTime",
            one_of(*TIMESTAMP_TYPES),
            "Which timestamp records get: the producer's (`CreateTime`) or the broker's at the append (`LogAppendTime`).",
        ),
        _key(
            "min.cleanable.dirty.ratio",
            _DOUBLE,
            0.5,
            between(0, 1),
            "The share of a compacted log's bytes that must be uncompacted before compaction starts. A lower share keeps fewer "
            "duplicates and compacts more often.",
        ),
        _key(
            "min.compaction.lag.ms",
            _LONG,
            0,
            at_least(0),
            "How long a record is kept uncompacted after it was written.",
        ),
        _key(
            "min.insync.replicas",
            _INT,
            1,
            at_least(1),
            "How many replicas must be in sync for a write with acks=all to succeed. Capped at the replication factor.",
        ),
        _key("preallocate", _BOOLEAN, False, None, "Reserve a new segment's whole size on disk when it is created."),
        _key(
            "remote.log.copy.disable",
            _BOOLEAN,
            False,
            None,
            "With tiered storage, stop moving segments to it. Those already there stay readable.",
        ),
        _key(
            "remote.log.delete.on.disable",
            _BOOLEAN,
            False,
            None,
            "With tiered storage, delete what is there when the topic stops using it.",
        ),
        _key("remote.storage.enable", _BOOLEAN, False, None, "Move segments to tiered storage."),
        _key(
            "retention.bytes",
            _LONG,
            -1,
            None,
            "How many bytes of each partition are kept under the `delete` policy. The oldest segments are deleted first. "
            "-1: no limit.",
        ),
        _key(
            "retention.ms",
            _LONG,
            7 * DAY_MS,
            at_least(-1),
            "How long records are kept under the `delete` policy, by the largest timestamp in their segment. -1: for ever.",
        ),
        _key(
            "segment.bytes",
            _INT,
            1 << 30,
            at_least(1 << 20),
            "The size at which a new segment is rolled. Retention and compaction work on rolled segments.",
        ),
        _key(
            "segment.index.bytes",
            _INT,
            10 << 20,
            at_least(4),
            "The largest size of a segment's offset index; when it is full, a new segment is rolled. Rarely worth changing.",
        ),
        _key(
            "segment.jitter.ms",
            _LONG,
            0,
            at_least(0),
            "The most that is randomly subtracted from segment.ms, so that many partitions do not roll segments at once.",
        ),
        _key(
            "segment.ms",
            _LONG,
            7 * DAY_MS,
            at_least(1),
            "The age at which a segment is rolled even if it is not full, so that retention and compaction can process it.",
        ),
        _key(
            "unclean.leader.election.enable",
            _BOOLEAN,
            False,
            None,
            "Let a replica that is not in sync become leader when no other is left. Acknowledged records can be lost.",
        ),
    ],
)

TOPIC_WITHOUT_EFFECT = frozenset(
    {
        "local.retention.bytes",
        "local.retention.ms",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
)
"""Accepted, stored and shown, but what they configure is not implemented yet."""

TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

TOPIC_KEYS.other_names = {
    broker_name: name for name, synonyms in TOPIC_SYNONYMS.items() for broker_name, _ in synonyms if broker_name != name
}
