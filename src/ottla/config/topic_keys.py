"""The topic settings: Kafka 4.3's names, types, defaults and rules, with our own words on what each does.

`TOPIC_SYNONYMS` names the broker settings that stand in for a topic setting that the topic does not have, first wins; the
second part is the factor that turns the broker's unit into the topic's.
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

TOPIC_KEYS = ConfigTable(
    "topic",
    [
        _key(
            "cleanup.policy",
            _LIST,
            ("delete",),
            words_from("compact", "delete"),
            "How old records go: `delete` drops whole segments by age and size, `compact` keeps the last record of every key, "
            "both together do both. Empty keeps everything until it is deleted by hand.",
            distinct=True,
        ),
        _key(
            "compression.gzip.level",
            _INT,
            -1,
            between_or(1, 9, -1),
            "How hard gzip tries when the broker compresses with it; -1 leaves the choice to gzip.",
        ),
        _key("compression.lz4.level", _INT, 9, between(1, 17), "How hard lz4 tries when the broker compresses with it."),
        _key(
            "compression.type",
            _STRING,
            "producer",
            one_of(*COMPRESSION_TYPES),
            "What batches are compressed with on disk. `producer` stores them as they came; any other codec makes the broker "
            "compress anew every batch that came in a different one.",
        ),
        _key(
            "compression.zstd.level", _INT, 3, between(-131072, 22), "How hard zstd tries when the broker compresses with it."
        ),
        _key(
            "delete.retention.ms",
            _LONG,
            DAY_MS,
            at_least(0),
            "How long a compacted topic keeps the marker of a deleted key, once the key's older values are gone. A reader that "
            "needs longer for a whole pass can miss that the key was deleted.",
        ),
        _key(
            "file.delete.delay.ms",
            _LONG,
            MINUTE_MS,
            at_least(0),
            "How long a dropped segment's files stay on disk under another name, so that reads under way can end.",
        ),
        _key(
            "flush.messages",
            _LONG,
            LONG_MAX,
            at_least(1),
            "Force the log to the device after this many records. Replication is the usual protection; a low number is slow.",
        ),
        _key(
            "flush.ms",
            _LONG,
            LONG_MAX,
            at_least(0),
            "Force the log to the device when records have waited this long. Replication is the usual protection.",
        ),
        _key(
            "follower.replication.throttled.replicas",
            _LIST,
            (),
            throttled_replicas,
            "Replicas that the follower's replication quota slows down: partition:broker pairs, or * for all.",
        ),
        _key(
            "index.interval.bytes",
            _INT,
            4096,
            at_least(0),
            "How many bytes of log lie between two entries of its indexes. Less finds offsets sooner and makes larger indexes.",
        ),
        _key(
            "internal.segment.bytes",
            _INT,
            None,
            None,
            "Takes the place of segment.bytes, without its lower bound. For tests.",
            internal=True,
        ),
        _key(
            "leader.replication.throttled.replicas",
            _LIST,
            (),
            throttled_replicas,
            "Replicas that the leader's replication quota slows down: partition:broker pairs, or * for all.",
        ),
        _key(
            "local.retention.bytes",
            _LONG,
            -2,
            at_least(-2),
            "With tiered storage, how many bytes of a partition stay on the broker; -2 means as retention.bytes says.",
        ),
        _key(
            "local.retention.ms",
            _LONG,
            -2,
            at_least(-2),
            "With tiered storage, how long segments stay on the broker; -2 means as retention.ms says.",
        ),
        _key(
            "max.compaction.lag.ms",
            _LONG,
            LONG_MAX,
            at_least(1),
            "The longest a record of a compacted topic may wait to be compacted, however little is dirty.",
        ),
        _key(
            "max.message.bytes",
            _INT,
            1048588,
            at_least(0),
            "The largest record batch the topic takes, in bytes, after compression where there is any.",
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
            "Whose time records carry: the producer's (`CreateTime`) or the broker's at the append (`LogAppendTime`).",
        ),
        _key(
            "min.cleanable.dirty.ratio",
            _DOUBLE,
            0.5,
            between(0, 1),
            "How much of a compacted log must be uncompacted before compaction starts, as a share of its bytes. Less keeps "
            "fewer duplicates and compacts more often.",
        ),
        _key(
            "min.compaction.lag.ms",
            _LONG,
            0,
            at_least(0),
            "How long a record is safe from compaction after it was written.",
        ),
        _key(
            "min.insync.replicas",
            _INT,
            1,
            at_least(1),
            "How many replicas must be in sync for a write with acks=all to be taken. Counts at most the replication factor.",
        ),
        _key("preallocate", _BOOLEAN, False, None, "Reserve a new segment's whole size on disk when it is made."),
        _key(
            "remote.log.copy.disable",
            _BOOLEAN,
            False,
            None,
            "With tiered storage, stop moving segments to it while those already there stay readable.",
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
            "How many bytes of each partition are kept under the `delete` policy; the oldest segments go first. -1: no limit.",
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
            "The size at which a segment is closed and the next begun. Retention and compaction work on closed segments.",
        ),
        _key(
            "segment.index.bytes",
            _INT,
            10 << 20,
            at_least(4),
            "The most a segment's offset index may take; a full index closes the segment. Rarely worth changing.",
        ),
        _key(
            "segment.jitter.ms",
            _LONG,
            0,
            at_least(0),
            "A random time, up to this long, taken off segment.ms, so that many partitions do not close segments at once.",
        ),
        _key(
            "segment.ms",
            _LONG,
            7 * DAY_MS,
            at_least(1),
            "The age at which a segment is closed even if it is not full, so that retention and compaction can have it.",
        ),
        _key(
            "unclean.leader.election.enable",
            _BOOLEAN,
            False,
            None,
            "Let a replica that is not in sync become leader when no other is left, at the price of acknowledged records.",
        ),
    ],
)

TOPIC_WITHOUT_EFFECT = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
)
"""Accepted, stored and shown; what they are about is not there yet."""

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
