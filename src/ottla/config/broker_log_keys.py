"""The broker settings that the log goes by: Kafka 4.3's names, types, defaults and rules.

Many of them are what a topic falls back to (`TOPIC_SYNONYMS`); their documentation is that of the topic setting. The rest of
the broker's settings join this table where the broker reads them.
"""

from ottla.config.keys import ConfigKey, ConfigTable, Importance, UpdateMode
from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from ottla.config.values import ConfigType, Rule, Value, at_least

_BOOLEAN, _DOUBLE, _INT, _LIST = ConfigType.BOOLEAN, ConfigType.DOUBLE, ConfigType.INT, ConfigType.LIST
_LONG, _STRING = ConfigType.LONG, ConfigType.STRING
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_FIXED, _SHARED = UpdateMode.READ_ONLY, UpdateMode.CLUSTER_WIDE
_LONG_MAX = 2**63 - 1
_DOUBLE_MAX = 1.7976931348623157e308

_UNLIKE_TOPIC: dict[str, tuple[ConfigType, Value, Rule | None, UpdateMode]] = {
    "log.flush.interval.ms": (_LONG, None, None, _SHARED),
    "log.flush.scheduler.interval.ms": (_LONG, _LONG_MAX, None, _FIXED),
    "log.retention.ms": (_LONG, None, None, _SHARED),
    "log.retention.minutes": (_INT, None, None, _FIXED),
    "log.retention.hours": (_INT, 168, None, _FIXED),
    "log.roll.ms": (_LONG, None, None, _SHARED),
    "log.roll.hours": (_INT, 168, at_least(1), _FIXED),
    "log.roll.jitter.ms": (_LONG, None, None, _SHARED),
    "log.roll.jitter.hours": (_INT, 0, at_least(0), _FIXED),
}
"""Synonyms whose type, default or rule differs from the topic setting's, mostly since another of them carries the default."""

_HIGH_SYNONYMS = (
    "compression.type", "log.flush.", "log.retention.", "log.roll.", "log.segment.", "message.max.bytes",
    "min.insync.replicas", "unclean.leader.election.enable",
)  # fmt: skip


def _synonym_keys() -> list[ConfigKey]:
    keys = []
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        topic_key = TOPIC_KEYS[topic_name]
        for position, (name, factor) in enumerate(synonyms):
            like_topic = (topic_key.type, topic_key.default, topic_key.rule, _SHARED)
            type_, default, rule, mode = _UNLIKE_TOPIC.get(name, like_topic)
            note = f"For topics without {topic_name} of their own. {topic_key.documentation}"
            if position:
                unit = {1: "", 60_000: "In minutes. ", 3_600_000: "In hours. "}[factor]
                note = f"{unit}Counts only where {' and '.join(other for other, _ in synonyms[:position])} are not set. {note}"
            importance = _HIGH if name.startswith(_HIGH_SYNONYMS) else _MEDIUM
            keys.append(ConfigKey(name, type_, default, rule, importance, note, mode))
    return keys


def _key(
    name: str, type_: ConfigType, default: Value, rule: Rule | None, importance: Importance, mode: UpdateMode, note: str
) -> ConfigKey:
    return ConfigKey(name, type_, default, rule, importance, note, mode)


BROKER_LOG_KEYS = ConfigTable(
    "broker",
    [
        *_synonym_keys(),
        _key(
            "log.dir", _LIST, ("/tmp/kafka-logs",), None, _HIGH, _FIXED,
            "Where partitions are kept, if log.dirs does not say.",
        ),
        _key(
            "log.dirs", _LIST, None, None, _HIGH, _FIXED,
            "The directories in which partitions are kept, separated by commas, best one per disk. A new partition goes to the "
            "directory with the fewest. Wins over log.dir.",
        ),
        _key(
            "metadata.log.dir", _STRING, None, None, _HIGH, _FIXED,
            "Where the cluster's metadata log is kept; the first of log.dirs if not set.",
        ),
        _key(
            "log.dir.failure.timeout.ms", _LONG, 30_000, at_least(1), _LOW, _FIXED,
            "How long a broker may fail to tell the controller that a log directory is lost before it stops itself.",
        ),
        _key(
            "num.recovery.threads.per.data.dir", _INT, 2, at_least(1), _HIGH, _SHARED,
            "How many logs of each directory are opened at once at the start, and flushed at once at the end.",
        ),
        _key(
            "log.retention.check.interval.ms", _LONG, 300_000, at_least(1), _MEDIUM, _FIXED,
            "How often to look for segments that retention lets go.",
        ),
        _key(
            "log.flush.offset.checkpoint.interval.ms", _INT, 60_000, at_least(0), _HIGH, _FIXED,
            "How often to write down how far each log is durable. What lies beyond is checked after a crash.",
        ),
        _key(
            "log.flush.start.offset.checkpoint.interval.ms", _INT, 60_000, at_least(0), _HIGH, _FIXED,
            "How often to write down where each log begins, so that deleted records do not come back after a crash.",
        ),
        _key(
            "log.cleaner.enable", _BOOLEAN, True, None, _MEDIUM, _FIXED,
            "Compact logs in the background. Without it topics with the `compact` policy grow without bound.",
        ),
        _key("log.cleaner.threads", _INT, 1, at_least(0), _MEDIUM, _SHARED, "How many logs are compacted at once."),
        _key(
            "log.cleaner.dedupe.buffer.size", _LONG, 128 << 20, None, _MEDIUM, _SHARED,
            "The memory for the map of keys that compaction builds, shared by all that run. A larger map means fewer passes.",
        ),
        _key(
            "log.cleaner.io.buffer.size", _INT, 512 << 10, at_least(0), _MEDIUM, _SHARED,
            "The memory for reading and writing in compaction, shared by all that run.",
        ),
        _key(
            "log.cleaner.io.buffer.load.factor", _DOUBLE, 0.9, None, _MEDIUM, _SHARED,
            "How full the map of keys may get, from 0 to 1. Fuller fits more keys and finds them more slowly.",
        ),
        _key(
            "log.cleaner.io.max.bytes.per.second", _DOUBLE, _DOUBLE_MAX, None, _MEDIUM, _SHARED,
            "The most that compaction reads and writes in a second, so that clients keep their share of the disk.",
        ),
        _key(
            "log.cleaner.backoff.ms", _LONG, 15_000, at_least(0), _MEDIUM, _SHARED,
            "How long compaction rests when there is nothing to compact.",
        ),
        _key(
            "producer.id.expiration.ms", _INT, 86_400_000, at_least(1), _LOW, _SHARED,
            "How long a partition remembers a silent producer. A retry after that is not recognised as one.",
        ),
        _key(
            "transaction.max.timeout.ms", _INT, 900_000, at_least(1), _HIGH, _FIXED,
            "The longest timeout a transaction may ask for.",
        ),
        _key(
            "transaction.partition.verification.enable", _BOOLEAN, True, None, _LOW, _SHARED,
            "Ask the transaction coordinator whether a transaction is really open before its first record is taken.",
        ),
    ],
)  # fmt: skip
