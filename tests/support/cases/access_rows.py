"""The table of what every API checks: requests, what a user is allowed, and the error codes that come back.

A row's steps go from nothing to enough: each has the bindings of a user of its own, and the codes that the response then has,
in their order, without zeros. None: the request is allowed, so no code of a denial is in it; other errors may be.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.api_table import ApiKey as K
from ottla.wire.apis import APIS

BROKER, CONTROLLER = "SASL", "CONTROLLER"
DENIALS = frozenset({29, 30, 31, 53, 65})
TOPICS = ("t", "u")


class Ask(NamedTuple):
    """What a row's fields depend on."""

    version: int
    ids: dict[str, Uuid]
    batch: bytes
    transactional_batch: bytes

    def topic(self, name: str, since: int, field: str = "name") -> dict[str, Any]:
        """A topic by name, or since a version by id."""
        return {"topic_id": self.ids[name], field: ""} if self.version >= since else {field: name}


class Row(NamedTuple):
    name: str
    key: int
    fields: Callable[[Ask], dict[str, Any]]
    steps: Sequence[tuple[str, Sequence[int] | None]]
    """(bindings such as `Write Topic t, Read Group g`; expected codes)."""
    listeners: Sequence[str] = (BROKER,)
    versions: Sequence[int] = ()
    """Empty: the oldest and the newest."""


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
        versions=(4, 12),
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
    Row("metadata of all", K.METADATA, lambda a: {"topics": None}, [("", []), ("Describe Topic t", [])], versions=(1, 13)),
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
        "delete groups", K.DELETE_GROUPS, lambda a: {"groups_names": ["h"]}, [("Read Group h", [30]), ("Delete Group h", None)]
    ),
    Row("list groups", K.LIST_GROUPS, lambda a: {}, [("", []), ("Describe Group g", []), ("Describe Cluster", [])]),
    Row(
        "offset delete",
        K.OFFSET_DELETE,
        lambda a: {"group_id": "g", "topics": _partitions()},
        [("", [30]), ("Delete Group g, Read Topic u", [29]), ("Delete Group g, Read Topic *", None)],
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
        [("", [29]), ("Describe Topic t", [29])],
        BOTH,
        versions=(6,),
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
        [("", [53, 53]), ("Write TransactionalId x", [30, 30])],
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
    Row("list transactions", K.LIST_TRANSACTIONS, lambda a: {}, [("", []), ("Describe TransactionalId x", [])]),
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
        "describe topic partitions",
        K.DESCRIBE_TOPIC_PARTITIONS,
        lambda a: {"topics": [{"name": name} for name in TOPICS]},
        [("", [29, 29]), ("Describe Topic u", [29]), ("Describe Topic *", [])],
    ),
    Row("fetch of the metadata log", K.FETCH, lambda a: {"max_wait_ms": 0}, [("", [31])], (CONTROLLER,), versions=(12, 18)),
    *(
        Row(name, key, lambda a, fields=fields: fields, [("Alter Cluster", [31])], (CONTROLLER,))  # type: ignore[misc]
        for name, key, fields in (
            ("vote", K.VOTE, {}),
            ("begin epoch", K.BEGIN_QUORUM_EPOCH, {}),
            ("end epoch", K.END_QUORUM_EPOCH, {}),
            ("fetch snapshot", K.FETCH_SNAPSHOT, {}),
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
