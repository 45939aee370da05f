"""The table of what every API checks: requests, what a user is allowed, and the error codes that come back.

A row's steps go from nothing to enough: each has the bindings of a user of its own, and the codes that the response then has,
in their order, without zeros. None: the request is allowed, so no code of a denial is in it; other errors may be. Rows about
what is left out, and about authorized operations, also have what `see` finds in the response.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.api_table import ApiKey as K
from ottla.wire.apis import APIS

BROKER, CONTROLLER = "SASL", "CONTROLLER"
DENIALS = frozenset({29, 30, 31, 53, 65})
TOPICS = ("t", "u")
GROUPS = ("g", "kept")
"""Groups that have committed offsets of both topics."""
TRANSACTION = "running"
"""A transactional id whose transaction has both topics."""
UNSET = -(1 << 31)
"""Authorized operations that are not told."""


class Ask(NamedTuple):
    """What a row's fields depend on."""

    version: int
    ids: dict[str, Uuid]
    batch: bytes
    transactional_batch: bytes
    token: bytes
    """The HMAC of a token of carol's."""

    def topic(self, name: str, since: int, field: str = "name") -> dict[str, Any]:
        """A topic by name, or since a version by id."""
        return {"topic_id": self.ids[name], field: ""} if self.version >= since else {field: name}


class Row(NamedTuple):
    name: str
    key: int
    fields: Callable[[Ask], dict[str, Any]]
    steps: Sequence[tuple[str, Sequence[int] | None] | tuple[str, Sequence[int] | None, object]]
    """(bindings such as `Write Topic t, Read Group g`; expected codes; what `see` finds)."""
    listeners: Sequence[str] = (BROKER,)
    versions: Sequence[int] = ()
    """Empty: the oldest and the newest."""
    see: Callable[[Any], object] | None = None


def request_of(key: int, fields: dict[str, Any]) -> Any:
    """A request from nested fields: a list's dictionaries become the struct that has their keys."""
    kind = APIS[key].request_class
    return kind(**{name: _value(kind, value) for name, value in fields.items()})


def _value(kind: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_value(kind, each) for each in value]
    if not isinstance(value, dict):
        return value
    struct = next(each for each in kind.STRUCTS if value.keys() <= set(each.__slots__))
    return struct(**{name: _value(kind, each) for name, each in value.items()})


def codes_in(part: Any) -> list[int]:
    """All error codes of a response but zeros, in their order."""
    found: list[int] = []
    for name in part.__slots__:
        value = getattr(part, name)
        if name.endswith("error_code") and value:
            found.append(value)
        elif isinstance(value, list):
            for each in value:
                if hasattr(each, "__slots__"):
                    found += codes_in(each)
    return found


def _produce(ask: Ask, batch: bytes) -> dict[str, Any]:
    topics = [ask.topic(name, 13) | {"partition_data": [{"index": 0, "records": batch}]} for name in TOPICS]
    return {"acks": 1, "timeout_ms": 30_000, "topic_data": topics}


def _fetch(ask: Ask, **more: Any) -> dict[str, Any]:
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
    topics = [ask.topic(name, 13, "topic") | {"partitions": partitions} for name in TOPICS]
    return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 100_000, "topics": topics, **more}


def _partitions(field: str = "partition_index", **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "partitions": [{field: 0, **more}]} for name in TOPICS]


def _offset_fetch(ask: Ask, group: str = "g") -> dict[str, Any]:
    if ask.version < 8:
        return {"group_id": group, "topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]}
    topics = [ask.topic(name, 10) | {"partition_indexes": [0]} for name in TOPICS]
    return {"groups": [{"group_id": group, "topics": topics}]}


def _offset_commit(ask: Ask) -> dict[str, Any]:
    partitions = [{"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}]
    return {"group_id": "g", "topics": [ask.topic(name, 10) | {"partitions": partitions} for name in TOPICS]}


def _coordinator(ask: Ask, kind: int, key: str) -> dict[str, Any]:
    return {"key_type": kind, "coordinator_keys": [key]} if ask.version >= 4 else {"key": key, "key_type": kind}


def _add_partitions(ask: Ask) -> dict[str, Any]:
    topics = [{"name": name, "partitions": [0]} for name in TOPICS]
    if ask.version < 4:
        return {
            "v3_and_below_transactional_id": "x",
            "v3_and_below_producer_id": 1,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": topics,
        }
    transaction = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "verify_only": True, "topics": topics}
    return {"transactions": [transaction]}


def _delete_topics(ask: Ask) -> dict[str, Any]:
    if ask.version >= 6:
        return {"topics": [{"name": "absent", "topic_id": ZERO_UUID}], "timeout_ms": 30_000}
    return {"topic_names": ["absent"], "timeout_ms": 30_000}


def _configs(kind: int, name: str, **more: Any) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, **more}


def _incremental(kind: int, name: str, config: str, value: str) -> dict[str, Any]:
    configs = [{"name": config, "config_operation": 0, "value": value}]
    return {"resources": [_configs(kind, name, configs=configs)], "validate_only": True}


BOTH = (BROKER, CONTROLLER)
ROWS = [
    Row(
        "produce", K.PRODUCE, lambda a: _produce(a, a.batch), [("", [29, 29]), ("Write Topic t", [29]), ("Write Topic *", None)]
    ),
    Row(
        "produce in a transaction",
        K.PRODUCE,
        lambda a: _produce(a, a.transactional_batch) | {"transactional_id": "x", "acks": -1},
        [("Write Topic *", [53, 53]), ("Write Topic *, Write TransactionalId x", None)],
    ),
    Row("fetch", K.FETCH, lambda a: _fetch(a), [("", [29, 29]), ("Read Topic t", [29]), ("Read Topic *", None)]),
    Row(
        "fetch of a follower",
        K.FETCH,
        lambda a: (
            _fetch(a, replica_state={"replica_id": 1, "replica_epoch": -1}) if a.version > 14 else _fetch(a, replica_id=1)
        ),
        [("Read Topic *", [29, 29]), ("ClusterAction Cluster", None)],
    ),
    Row(
        "list offsets",
        K.LIST_OFFSETS,
        lambda a: {"replica_id": -1, "topics": _partitions(timestamp=-1)},
        [("", [29, 29]), ("Describe Topic t", [29]), ("Read Topic *", None)],
    ),
    Row(
        "metadata",
        K.METADATA,
        lambda a: {"topics": [{"name": name} for name in (*TOPICS, "absent")], "allow_auto_topic_creation": False},
        [("", [29, 29, 29]), ("Describe Topic u", [29, 29]), ("Describe Topic *", [3])],
        versions=(4, 13),
    ),
    Row(
        "metadata that creates",
        K.METADATA,
        lambda a: {"topics": [{"name": "made"}], "allow_auto_topic_creation": True},
        [("", [29]), ("Describe Topic made", [29]), ("Describe Topic made, Create Topic made", None)],
        versions=(4, 13),
    ),
    Row(
        "metadata by id",
        K.METADATA,
        lambda a: {"topics": [{"name": None, "topic_id": a.ids[name]} for name in TOPICS]},
        [("", [29, 29]), ("Describe Topic *", [])],
        versions=(12, 13),
    ),
    Row(
        "metadata of all",
        K.METADATA,
        lambda a: {"topics": None},
        [("", [], set()), ("Describe Topic t", [], {"t"}), ("Describe Topic *, Deny Describe Topic t", [], {"u"})],
        versions=(1, 13),
        see=lambda r: {each.name for each in r.topics} & {*TOPICS},
    ),
    Row(
        "operations of topics",
        K.METADATA,
        lambda a: {
            "topics": [{"name": name} for name in (*TOPICS, "absent")],
            "include_topic_authorized_operations": True,
            "allow_auto_topic_creation": False,
        },
        [
            ("Describe Topic t", [29, 29], {"t": 1 << 8, "u": UNSET, "absent": UNSET}),
            (
                "Read Topic *, Alter Topic u",
                [3],
                {"t": 1 << 8 | 1 << 3, "u": 1 << 8 | 1 << 7 | 1 << 3, "absent": 1 << 8 | 1 << 3},
            ),
            ("All Topic *, Deny Describe Topic u", [3, 29], {"t": 3576, "u": UNSET, "absent": 3576}),
        ],
        versions=(8, 10, 13),
        see=lambda r: {each.name: each.topic_authorized_operations for each in r.topics},
    ),
    *(
        Row(
            f"operations of the cluster, {'asked for' if asked else 'not asked for'}",
            key,
            lambda a, asked=asked: {"include_cluster_authorized_operations": asked},  # type: ignore[misc]
            [
                ("", [], 0 if asked else UNSET),
                ("Describe Cluster", [], 1 << 8 if asked else UNSET),
                ("Alter Cluster, Create Cluster", [], 1 << 8 | 1 << 7 | 1 << 5 if asked else UNSET),
                ("All Cluster", [], 8096 if asked else UNSET),
                ("All Cluster, Deny Describe Cluster", [], 0 if asked else UNSET),
            ],
            versions=versions,
            see=lambda r: r.cluster_authorized_operations,
        )
        for key, versions in ((K.METADATA, (8, 10)), (K.DESCRIBE_CLUSTER, (0, 2)))
        for asked in (True, False)
    ),
    Row(
        "offset commit",
        K.OFFSET_COMMIT,
        _offset_commit,
        [("Read Topic *", [30, 30]), ("Read Group g, Read Topic u", [29]), ("Read Group g, Read Topic *", [])],
    ),
    Row(
        "offset fetch",
        K.OFFSET_FETCH,
        _offset_fetch,
        [("Describe Topic *", [30]), ("Describe Group g, Describe Topic t", [29]), ("Read Group g, Read Topic *", [])],
        versions=(2, 7, 8, 10),
    ),
    Row("offset fetch, old", K.OFFSET_FETCH, _offset_fetch, [("", [30, 30]), ("Read Group g", [29, 29])], versions=(1,)),
    Row("find group", K.FIND_COORDINATOR, lambda a: _coordinator(a, 0, "g"), [("", [30]), ("Describe Group g", None)]),
    Row(
        "find transaction",
        K.FIND_COORDINATOR,
        lambda a: _coordinator(a, 1, "x"),
        [("", [53]), ("Describe TransactionalId x", None)],
        versions=(1, 3, 4, 6),
    ),
    Row(
        "find share state",
        K.FIND_COORDINATOR,
        lambda a: _coordinator(a, 2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0"),
        [("Describe Group *", [31]), ("ClusterAction Cluster", None)],
        versions=(6,),
    ),
    Row(
        "join group",
        K.JOIN_GROUP,
        lambda a: {"group_id": "g2", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"},
        [("Describe Group g2", [30]), ("Read Group g2", None)],
    ),
    Row(
        "sync group",
        K.SYNC_GROUP,
        lambda a: {"group_id": "g"} | ({"protocol_type": "p", "protocol_name": "q"} if a.version > 4 else {}),
        [("", [30]), ("Read Group g", None)],
    ),
    Row("heartbeat", K.HEARTBEAT, lambda a: {"group_id": "g"}, [("", [30]), ("Read Group g", None)]),
    Row("leave group", K.LEAVE_GROUP, lambda a: {"group_id": "g"}, [("", [30]), ("Read Group g", None)]),
    Row("describe groups", K.DESCRIBE_GROUPS, lambda a: {"groups": ["g", "h"]}, [("", [30, 30]), ("Describe Group *", None)]),
    Row(
        "operations of groups",
        K.DESCRIBE_GROUPS,
        lambda a: {"groups": list(GROUPS), "include_authorized_operations": True},
        [
            ("", [30, 30], [UNSET, UNSET]),
            ("Read Group g", [30], [1 << 8 | 1 << 3, UNSET]),
            ("All Group *", [], [3400, 3400]),
        ],
        versions=(3, 6),
        see=lambda r: [each.authorized_operations for each in sorted(r.groups, key=lambda each: each.group_id)],
    ),
    Row(
        "offset fetch of all",
        K.OFFSET_FETCH,
        lambda a: {"groups": [{"group_id": "kept", "topics": None}]} if a.version > 7 else {"group_id": "kept", "topics": None},
        [
            ("", [30], []),
            ("Describe Group kept", [], []),
            ("Describe Group kept, Describe Topic u", [], ["u"]),
            ("Describe Group kept, Describe Topic *", [], ["t", "u"]),
        ],
        versions=(2, 7, 8, 9),
        see=lambda r: sorted(each.name for each in (r.groups[0].topics if r.groups else r.topics)),
    ),
    Row(
        "delete groups", K.DELETE_GROUPS, lambda a: {"groups_names": ["h"]}, [("Read Group h", [30]), ("Delete Group h", None)]
    ),
    Row(
        "list groups",
        K.LIST_GROUPS,
        lambda a: {},
        [
            ("", [], set()),
            ("Describe Group g", [], {"g"}),
            ("Read Group kept", [], {"kept"}),
            ("Describe Cluster", [], {*GROUPS}),
        ],
        see=lambda r: {each.group_id for each in r.groups} & {*GROUPS},
    ),
    Row(
        "offset delete",
        K.OFFSET_DELETE,
        lambda a: {"group_id": "g", "topics": _partitions()},
        [("", [30]), ("Delete Group g, Read Topic u", [29]), ("Delete Group g, Read Topic *", None)],
    ),
    Row(
        "offset delete, unknown group",
        K.OFFSET_DELETE,
        lambda a: {"group_id": "unknown", "topics": _partitions()},
        [
            ("Delete Group unknown", [69]),
            ("Delete Group unknown, Read Topic u", [69]),
            ("Delete Group unknown, Read Topic *", [69]),
        ],
    ),
    Row(
        "consumer group heartbeat",
        K.CONSUMER_GROUP_HEARTBEAT,
        lambda a: {
            "group_id": "c",
            "member_id": "AAAAAAAAAAAAAAAAAAAAAQ" if a.version else "",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": list(TOPICS),
            "topic_partitions": [],
        },
        [("Describe Topic *", [30]), ("Read Group c, Describe Topic t", [29]), ("Read Group c, Describe Topic *", None)],
    ),
    Row(
        "consumer group heartbeat with a regular expression",
        K.CONSUMER_GROUP_HEARTBEAT,
        lambda a: {
            "group_id": "c",
            "member_id": "AAAAAAAAAAAAAAAAAAAAAg",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_regex": "t|u",
            "topic_partitions": [],
        },
        [("Describe Topic *", [30]), ("Read Group c", None), ("Read Group c, Describe Topic t", None)],
        versions=(1,),
    ),
    Row(
        "consumer group describe",
        K.CONSUMER_GROUP_DESCRIBE,
        lambda a: {"group_ids": ["g"]},
        [("", [30]), ("Describe Group g", None)],
    ),
    Row(
        "create topics",
        K.CREATE_TOPICS,
        lambda a: {
            "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new", "newer")],
            "validate_only": True,
        },
        [
            ("", [29, 29]),
            ("Create Topic new, DescribeConfigs Topic new", [29]),
            ("Create Cluster, DescribeConfigs Topic *", []),
        ],
        BOTH,
    ),
    Row(
        "create topics without their settings",
        K.CREATE_TOPICS,
        lambda a: {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}], "validate_only": True},
        [("Create Cluster", [29])],
        BOTH,
        versions=(7,),
    ),
    Row(
        "delete topics",
        K.DELETE_TOPICS,
        _delete_topics,
        [("", [29]), ("Delete Topic absent", [3]), ("Delete Cluster", [3])],
        BOTH,
    ),
    Row(
        "delete a topic by id",
        K.DELETE_TOPICS,
        lambda a: {"topics": [{"name": None, "topic_id": a.ids["t"]}], "timeout_ms": 30_000},
        [("", [29], [None]), ("Describe Topic t", [29], ["t"])],
        BOTH,
        versions=(6,),
        see=lambda r: [each.name for each in r.responses],
    ),
    Row(
        "delete a topic by an unknown id",
        K.DELETE_TOPICS,
        lambda a: {"topics": [{"name": None, "topic_id": Uuid(b"\x77" * 16)}], "timeout_ms": 30_000},
        [("", [100])],
        BOTH,
        versions=(6,),
    ),
    Row(
        "create a topic that exists",
        K.CREATE_TOPICS,
        lambda a: {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 30_000},
        [("Describe Topic t", [29]), ("Create Topic t", [36])],
        BOTH,
    ),
    Row(
        "delete records",
        K.DELETE_RECORDS,
        lambda a: {"topics": _partitions(offset=0), "timeout_ms": 30_000},
        [("", [29, 29]), ("Delete Topic u", [29]), ("Delete Topic *", None)],
    ),
    Row(
        "create partitions",
        K.CREATE_PARTITIONS,
        lambda a: {
            "topics": [{"name": name, "count": 9, "assignments": None} for name in TOPICS],
            "timeout_ms": 30_000,
            "validate_only": True,
        },
        [("", [29, 29]), ("Alter Topic t", [29]), ("Alter Topic *", [])],
        BOTH,
    ),
    Row(
        "producer id",
        K.INIT_PRODUCER_ID,
        lambda a: {"transactional_id": None, "transaction_timeout_ms": 1000},
        [("Read Topic *", [31]), ("IdempotentWrite Cluster", None), ("Write Topic whatever", None)],
        versions=(0, 5),
    ),
    Row(
        "transactional producer id",
        K.INIT_PRODUCER_ID,
        lambda a: {"transactional_id": "x", "transaction_timeout_ms": 1000},
        [("Describe TransactionalId x", [53]), ("Write TransactionalId x", None)],
        versions=(0, 5),
    ),
    Row(
        "add partitions",
        K.ADD_PARTITIONS_TO_TXN,
        _add_partitions,
        [
            ("", [53, 53]),
            ("Write TransactionalId x, Write Topic t", [55, 29]),
            ("Write TransactionalId x, Write Topic *", None),
        ],
        versions=(0, 3),
    ),
    Row(
        "add partitions for brokers",
        K.ADD_PARTITIONS_TO_TXN,
        _add_partitions,
        [("Write TransactionalId x, Write Topic *", [31]), ("ClusterAction Cluster", None)],
        versions=(4, 5),
    ),
    Row(
        "add offsets",
        K.ADD_OFFSETS_TO_TXN,
        lambda a: {"transactional_id": "x", "producer_id": 1, "group_id": "g"},
        [("", [53]), ("Write TransactionalId x", [30]), ("Write TransactionalId x, Read Group g", None)],
    ),
    Row(
        "transactional offset commit",
        K.TXN_OFFSET_COMMIT,
        lambda a: {
            "transactional_id": "x",
            "group_id": "g",
            "producer_id": 1,
            "topics": _partitions(committed_offset=0, committed_metadata=""),
        },
        [
            ("", [53, 53]),
            ("Write TransactionalId x", [30, 30]),
            ("Write TransactionalId x, Read Group g", [29, 29]),
            ("Write TransactionalId x, Read Group g, Read Topic *", None),
        ],
    ),
    Row(
        "end transaction",
        K.END_TXN,
        lambda a: {"transactional_id": "x", "producer_id": 1},
        [("", [53]), ("Write TransactionalId x", None)],
    ),
    Row(
        "write markers",
        K.WRITE_TXN_MARKERS,
        lambda a: {
            "markers": [{"producer_id": 1, "topics": [{"name": "t", "partition_indexes": [7]}]}],
        },
        [("", [31]), ("ClusterAction Cluster", None), ("Alter Cluster", None)],
    ),
    Row(
        "offset for leader epoch",
        K.OFFSET_FOR_LEADER_EPOCH,
        lambda a: {"topics": [{"topic": name, "partitions": [{"partition": 0, "leader_epoch": 0}]} for name in TOPICS]},
        [("", [29, 29]), ("Describe Topic t", [29]), ("ClusterAction Cluster", [])],
    ),
    Row(
        "describe transactions",
        K.DESCRIBE_TRANSACTIONS,
        lambda a: {"transactional_ids": ["y"]},
        [("", [53]), ("Describe TransactionalId y", None)],
    ),
    Row(
        "topics of transactions",
        K.DESCRIBE_TRANSACTIONS,
        lambda a: {"transactional_ids": [TRANSACTION]},
        [
            ("Describe Topic *", [53], [[]]),
            (f"Describe TransactionalId {TRANSACTION}", [], [[]]),
            (f"Describe TransactionalId {TRANSACTION}, Describe Topic u", [], [["u"]]),
            (f"Write TransactionalId {TRANSACTION}, Read Topic *", [], [["t", "u"]]),
        ],
        see=lambda r: [sorted(topic.topic for topic in each.topics) for each in r.transaction_states],
    ),
    Row(
        "list transactions",
        K.LIST_TRANSACTIONS,
        lambda a: {},
        [("", [], False), ("Describe TransactionalId x", [], False), (f"Describe TransactionalId {TRANSACTION}", [], True)],
        see=lambda r: TRANSACTION in {each.transactional_id for each in r.transaction_states},
    ),
    Row(
        "describe producers",
        K.DESCRIBE_PRODUCERS,
        lambda a: {"topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]},
        [("Describe Topic *", [29, 29]), ("Read Topic u", [29]), ("Read Topic *", [])],
    ),
    Row("describe ACLs", K.DESCRIBE_ACLS, lambda a: _filter("_filter"), [("", [31]), ("Describe Cluster", [])], BOTH),
    Row(
        "create ACLs",
        K.CREATE_ACLS,
        lambda a: {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "",
                    "resource_pattern_type": 3,
                    "principal": "User:x",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
        [("Describe Cluster", [31]), ("Alter Cluster", [42])],
        BOTH,
    ),
    Row("delete ACLs", K.DELETE_ACLS, lambda a: {"filters": [_filter("nobody")]}, [("", [31]), ("Alter Cluster", [])], BOTH),
    Row(
        "describe configs",
        K.DESCRIBE_CONFIGS,
        lambda a: {"resources": [_configs(2, "t", configuration_keys=None), _configs(4, "1", configuration_keys=None)]},
        [
            ("", [29, 31]),
            ("DescribeConfigs Cluster", [29]),
            ("DescribeConfigs Topic t", [31]),
            ("AlterConfigs Topic t, AlterConfigs Cluster", []),
        ],
    ),
    *(
        Row(
            f"describe configs of {subject}",
            K.DESCRIBE_CONFIGS,
            lambda a, kind=kind, name=name: {"resources": [_configs(kind, name, configuration_keys=None)]},  # type: ignore[misc]
            [("DescribeConfigs Topic *", [code]), (f"DescribeConfigs {needed}", [])],
        )
        for subject, kind, name, code, needed in (
            ("a group", 32, "g", 30, "Group g"),
            ("client metrics", 16, "m", 31, "Cluster"),
            ("loggers", 8, "1", 31, "Cluster"),
        )
    ),
    Row(
        "describe configs at a controller",
        K.DESCRIBE_CONFIGS,
        lambda a: {"resources": [_configs(2, "t", configuration_keys=None), _configs(4, "1", configuration_keys=None)]},
        [("", [29, 31]), ("DescribeConfigs Cluster", [29]), ("AlterConfigs Topic t, AlterConfigs Cluster", [])],
        (CONTROLLER,),
    ),
    Row(
        "alter configs",
        K.ALTER_CONFIGS,
        lambda a: {
            "resources": [_configs(2, "t", configs=[{"name": "retention.ms", "value": "1000"}])],
            "validate_only": True,
        },
        [("DescribeConfigs Topic t", [29]), ("AlterConfigs Topic t", [])],
        BOTH,
    ),
    Row(
        "alter configs of brokers and groups",
        K.ALTER_CONFIGS,
        lambda a: {
            "resources": [
                _configs(4, "", configs=[{"name": "message.max.bytes", "value": "2000000"}]),
                _configs(32, "g", configs=[{"name": "consumer.session.timeout.ms", "value": "50000"}]),
            ],
            "validate_only": True,
        },
        [
            ("AlterConfigs Topic *", [31, 30]),
            ("AlterConfigs Group g", [31]),
            ("AlterConfigs Cluster, AlterConfigs Group g", None),
        ],
        BOTH,
    ),
    *(
        Row(f"change settings of {subject}", K.INCREMENTAL_ALTER_CONFIGS, fields, steps, BOTH)
        for subject, fields, steps in (
            ("a topic", lambda a: _incremental(2, "t", "retention.ms", "1"), [("", [29]), ("AlterConfigs Topic t", [])]),
            (
                "a group",
                lambda a: _incremental(32, "g", "consumer.session.timeout.ms", "50000"),
                [("", [30]), ("AlterConfigs Group g", [])],
            ),
            (
                "brokers",
                lambda a: _incremental(4, "", "message.max.bytes", "2000000"),
                [("", [31]), ("AlterConfigs Cluster", [])],
            ),
            (
                "client metrics",
                lambda a: _incremental(16, "m", "interval.ms", "1000"),
                [("", [31]), ("AlterConfigs Cluster", [])],
            ),
        )
    ),
    *(
        Row(
            f"change levels of loggers at a {'broker' if listener == BROKER else 'controller'}",
            K.INCREMENTAL_ALTER_CONFIGS,
            lambda a: _incremental(8, "1", "kafka.server.KafkaApis", "INFO"),
            steps,
            (listener,),
        )
        for listener, steps in (
            (BROKER, [("ClusterAction Cluster", [31]), ("AlterConfigs Cluster", None)]),
            (CONTROLLER, [("AlterConfigs Cluster", [31]), ("ClusterAction Cluster", None)]),
        )
    ),
    Row("list resources", K.LIST_CONFIG_RESOURCES, lambda a: {}, [("", [31]), ("DescribeConfigs Cluster", [])]),
    Row(
        "describe directories",
        K.DESCRIBE_LOG_DIRS,
        lambda a: {"topics": []},
        [("", [31]), ("Describe Cluster", [])],
        versions=(3, 5),
    ),
    Row(
        "move replicas",
        K.ALTER_REPLICA_LOG_DIRS,
        lambda a: {"dirs": [{"path": "/nowhere", "topics": [{"name": "t", "partitions": [0]}]}]},
        [("Describe Cluster", [31]), ("Alter Cluster", None)],
    ),
    Row(
        "elect leaders",
        K.ELECT_LEADERS,
        lambda a: {"topic_partitions": [{"topic": "t", "partitions": [0]}]},
        [("", [31, 31]), ("Alter Cluster", None)],
        BOTH,
        versions=(1, 2),
    ),
    Row(
        "elect leaders, old",
        K.ELECT_LEADERS,
        lambda a: {"topic_partitions": [{"topic": "t", "partitions": [0]}]},
        [("", [31]), ("Alter Cluster", None)],
        BOTH,
        versions=(0,),
    ),
    Row("reassign", K.ALTER_PARTITION_REASSIGNMENTS, lambda a: {"topics": []}, [("", [31]), ("Alter Cluster", [])], BOTH),
    Row("list reassignments", K.LIST_PARTITION_REASSIGNMENTS, lambda a: {}, [("", [31]), ("Describe Cluster", [])], BOTH),
    Row(
        "describe quotas",
        K.DESCRIBE_CLIENT_QUOTAS,
        lambda a: {"components": []},
        [("", [31]), ("DescribeConfigs Cluster", [])],
    ),
    Row(
        "change quotas",
        K.ALTER_CLIENT_QUOTAS,
        lambda a: {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "x"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}],
                }
            ],
            "validate_only": True,
        },
        [("", [31]), ("AlterConfigs Cluster", [])],
        BOTH,
    ),
    Row(
        "describe quorum",
        K.DESCRIBE_QUORUM,
        lambda a: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        [("", [31]), ("Describe Cluster", [])],
        BOTH,
    ),
    Row(
        "update features",
        K.UPDATE_FEATURES,
        lambda a: {"feature_updates": [], "validate_only": True},
        [("", [31]), ("Alter Cluster", None)],
        BOTH,
        versions=(1, 2),
    ),
    Row(
        "describe SCRAM users",
        K.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda a: {"users": []},  # null keeps Apache from answering a denied client at all
        [("", [31]), ("Describe Cluster", [])],
    ),
    Row(
        "change SCRAM users",
        K.ALTER_USER_SCRAM_CREDENTIALS,
        lambda a: {"deletions": [{"name": "nobody", "mechanism": 1}, {"name": "no one", "mechanism": 2}]},
        [("Describe Cluster", [31, 31]), ("Alter Cluster", [91, 91])],
        BOTH,
    ),
    Row(
        "a token for oneself",
        K.CREATE_DELEGATION_TOKEN,
        lambda a: (
            {"max_lifetime_ms": 60_000}
            | ({"owner_principal_type": None, "owner_principal_name": None} if a.version > 2 else {})
        ),
        [("", [])],
    ),
    Row(
        "a token for another owner",
        K.CREATE_DELEGATION_TOKEN,
        lambda a: {"max_lifetime_ms": 60_000, "owner_principal_type": "User", "owner_principal_name": "bob"},
        [("Alter Cluster", [65]), ("CreateTokens User User:bob", [])],
        versions=(3,),
    ),
    Row(
        "describe tokens",
        K.DESCRIBE_DELEGATION_TOKEN,
        lambda a: {"owners": [{"principal_type": "User", "principal_name": "carol"}]},
        [
            ("Describe Cluster", [], 0),
            ("DescribeTokens User User:bob", [], 0),
            ("DescribeTokens User User:carol", [], 1),
            ("Describe DelegationToken *", [], 1),
        ],
        see=lambda r: len(r.tokens),
    ),
    *(
        Row(
            name,
            key,
            lambda a, period=period: {"hmac": a.token, period: -1},
            [("All Cluster, All DelegationToken *, All User *", [63])],
        )  # type: ignore[misc]
        for name, key, period in (
            ("renew a token", K.RENEW_DELEGATION_TOKEN, "renew_period_ms"),
            ("expire a token", K.EXPIRE_DELEGATION_TOKEN, "expiry_time_period_ms"),
        )
    ),
    *(
        Row(name, key, lambda a: {"cluster_id": "another", "voter_id": 9}, [("", [31]), ("Alter Cluster", [104])], BOTH)
        for name, key in (("add a voter", K.ADD_RAFT_VOTER), ("remove a voter", K.REMOVE_RAFT_VOTER))
    ),
    Row("unregister", K.UNREGISTER_BROKER, lambda a: {"broker_id": 77}, [("", [31]), ("Alter Cluster", None)], BOTH),
    Row("describe cluster", K.DESCRIBE_CLUSTER, lambda a: {}, [("", [])]),
    Row(
        "describe the controllers",
        K.DESCRIBE_CLUSTER,
        lambda a: {"endpoint_type": 2},
        [("Describe Cluster", [31]), ("Alter Cluster", [])],
        (CONTROLLER,),
        versions=(1, 2),
    ),
    Row(
        "operations of the cluster at a controller",
        K.DESCRIBE_CLUSTER,
        lambda a: {"endpoint_type": 2, "include_cluster_authorized_operations": True},
        [
            ("Alter Cluster", [], 1 << 8 | 1 << 7),
            ("All Cluster", [], 8096),
            ("All Cluster, Deny Describe Cluster", [], 0),
        ],
        (CONTROLLER,),
        versions=(1, 2),
        see=lambda r: r.cluster_authorized_operations,
    ),
    Row(
        "describe topic partitions",
        K.DESCRIBE_TOPIC_PARTITIONS,
        lambda a: {"topics": [{"name": name} for name in TOPICS]},
        [("", [29, 29]), ("Describe Topic u", [29]), ("Describe Topic *", [])],
    ),
    Row(
        "partitions of all topics",
        K.DESCRIBE_TOPIC_PARTITIONS,
        lambda a: {"topics": []},
        [
            ("", [], {}),
            ("Describe Topic u", [], {"u": 1 << 8}),
            ("Read Topic t, Alter Topic t", [], {"t": 1 << 8 | 1 << 7 | 1 << 3}),
        ],
        see=lambda r: {each.name: each.topic_authorized_operations for each in r.topics},
    ),
    Row("fetch of the metadata log", K.FETCH, lambda a: {"max_wait_ms": 0}, [("", [31])], (CONTROLLER,), versions=(12, 18)),
    *(
        Row(name, key, lambda a, fields=fields: fields, [("Alter Cluster", [31])], (CONTROLLER,))  # type: ignore[misc]
        for name, key, fields in (
            ("vote", K.VOTE, {}),
            ("begin epoch", K.BEGIN_QUORUM_EPOCH, {}),
            ("end epoch", K.END_QUORUM_EPOCH, {}),
            ("fetch snapshot", K.FETCH_SNAPSHOT, {}),
            ("update voter", K.UPDATE_RAFT_VOTER, {}),
            ("alter partition", K.ALTER_PARTITION, {"broker_id": 1}),
            ("registration", K.BROKER_REGISTRATION, {"broker_id": 9}),
            ("broker heartbeat", K.BROKER_HEARTBEAT, {"broker_id": 1}),
            ("producer ids", K.ALLOCATE_PRODUCER_IDS, {"broker_id": 1}),
            ("controller registration", K.CONTROLLER_REGISTRATION, {"controller_id": 9}),
            ("directories of replicas", K.ASSIGN_REPLICAS_TO_DIRS, {"broker_id": 1}),
            ("envelope", K.ENVELOPE, {}),
        )
    ),
]


def _filter(principal: str) -> dict[str, Any]:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 3,
        "principal_filter": f"User:{principal}",
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
