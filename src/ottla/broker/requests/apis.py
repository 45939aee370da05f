"""The one table of what a node serves: a descriptor for each API.

ApiVersions advertises it, the pipeline finds handlers in it and asks it what to authorize and which quota a request counts
for, the search for refused parts and the fault injection of `ottla.testing` find topics and partitions by it, docs/apis.md is
generated from it. The versions of each API, and whether brokers forward it to the controller, are Kafka's (`ottla.wire.apis`).

A handler's module has two plain functions, and is imported when the first request of its API comes:

    handle(context: RequestContext, request) -> Handled                             the response, now or later (`context.py`)
    refuse(context: RequestContext, request, error: KafkaError) -> Message | None   the API's response to a failed request

A handler's header notes what each version of its API changed, where the handler or its client notices. Versions that only
changed the encoding are not listed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ottla.metadata.acls import Operation, ResourceType
from ottla.records.layout import ATTRIBUTE_BITS_AT, MAGIC, MAGIC_AT, TRANSACTIONAL
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import Handled, RequestContext
    from ottla.broker.services import NodeServices
    from ottla.errors import KafkaError


class Check(NamedTuple):
    """What a request needs to be allowed. A denied topic is refused alone; everything else is refused as a whole.

    A request without a name in `field` (null, as a transactional id may be) needs nothing.
    """

    operation: int
    resource_type: int
    field: str = ""
    """The attribute of the request with the resource's name; of topics, `TopicFields` says where they are."""
    or_cluster: int = 0
    """An operation on the cluster that is enough, and is asked for first; 0: none."""
    applies: Callable[[Any], bool] | None = None
    """Whether a request needs it; None: every request does."""


class TopicFields(NamedTuple):
    """Names of the attributes of an API that hold topics and partitions."""

    topics: tuple[str, ...]
    """In the request: its lists of topics."""
    name: str
    """In a topic: its name. An entry may also be the name itself, or have an id instead."""
    partitions: str | None
    """In a topic: its partitions, each an index or an entry with one; None: the API has topics only."""
    partition_index: str
    answers: str
    """In the response: its topics."""
    answer_partitions: str | None
    """In a topic of the response: its partitions."""
    are_denied_first: bool = False
    """Whether the answers to denied topics come before the others."""
    are_asked_last: bool = False
    """Whether a request is handled also with all of its topics denied: an error of its group comes first."""


class Quota:
    """Which quota a request counts for, besides that on the time it takes."""

    REQUEST: Final = "request"
    """None."""
    PRODUCE: Final = "produce"
    FETCH: Final = "fetch"
    CONTROLLER_MUTATION: Final = "controller-mutation"
    NONE: Final = "none"
    """Not even that on time: requests between nodes."""


class ServedApi(NamedTuple):
    """How a node serves one API."""

    on_broker: str | None
    """The module in `handlers/` that serves it on a broker's listeners."""
    on_controller: str | None = None
    """The same on a controller's listeners."""
    checks: tuple[Check, ...] = ()
    """What its requests need, in this order. What depends on more than their fields, the handler asks for itself."""
    controller_checks: tuple[Check, ...] | None = None
    """The same on a controller's listeners, where that differs."""
    topics: TopicFields | None = None
    """Where it names topics and partitions, and where their answers are."""
    quota: str = Quota.REQUEST
    throttle_at: int | None = None
    """Where `throttle_time_ms` is in a frame that the fast path answers with; negative: from its end."""
    is_searched: bool = False
    """Whether responses are searched for refused parts, for the log and the metrics: those to requests that change something.
    Their clients rely on the change, and one refused part in a thousand requests is hard to find on their side. Errors of reads
    and of most coordinators' APIs are part of normal operation."""
    served_with: str | None = None
    """The setting without which it is not served on a broker's listeners."""
    unstable_with: str | None = None
    """The setting with which its newest version is served, though it is unstable in Kafka 4.3."""


def is_transactional(records: bytes | memoryview) -> bool:
    """Whether a partition's records are a batch of a transaction."""
    # Bytes that are no batch get that error later, not the one for missing transactional ids: it is fatal for producers.
    return len(records) > ATTRIBUTE_BITS_AT and records[ATTRIBUTE_BITS_AT] & TRANSACTIONAL != 0 and records[MAGIC_AT] == MAGIC


def has_transactional_records(request: Any) -> bool:
    """Whether a Produce request has records of a transaction."""
    return any(
        data.records is not None and is_transactional(data.records)
        for topic in request.topic_data
        for data in topic.partition_data
    )


_NODE = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
_ALTER_CLUSTER = Check(Operation.ALTER, ResourceType.CLUSTER)
_DESCRIBE_CLUSTER = Check(Operation.DESCRIBE, ResourceType.CLUSTER)
_READ_GROUP = Check(Operation.READ, ResourceType.GROUP, "group_id")
_READ_TOPIC = Check(Operation.READ, ResourceType.TOPIC)
_DESCRIBE_TOPIC = Check(Operation.DESCRIBE, ResourceType.TOPIC)
_DELETE_GROUP = Check(Operation.DELETE, ResourceType.GROUP, "group_id")
_WRITE_TRANSACTION = Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
_OF_A_TOPIC = ("topics",), "name", "partitions", "partition_index", "topics", "partitions"

SERVED: Final[dict[int, ServedApi]] = {
    ApiKey.PRODUCE: ServedApi(
        "data.produce",
        checks=(
            _WRITE_TRANSACTION._replace(applies=has_transactional_records),
            Check(Operation.WRITE, ResourceType.TOPIC),
        ),
        topics=TopicFields(("topic_data",), "name", "partition_data", "index", "responses", "partition_responses"),
        quota=Quota.PRODUCE,
        throttle_at=-5,
        is_searched=True,
    ),
    ApiKey.FETCH: ServedApi(
        "data.fetch",
        "nodes.replica_requests",
        controller_checks=(_NODE,),
        topics=TopicFields(("topics",), "topic", "partitions", "partition", "responses", "partitions"),
        quota=Quota.FETCH,
    ),
    ApiKey.LIST_OFFSETS: ServedApi("data.list_offsets", checks=(_DESCRIBE_TOPIC,), topics=TopicFields(*_OF_A_TOPIC)),
    ApiKey.METADATA: ServedApi("cluster.metadata", topics=TopicFields(("topics",), "name", None, "", "topics", None)),
    ApiKey.OFFSET_COMMIT: ServedApi(
        "groups.offset_commit", checks=(_READ_GROUP, _READ_TOPIC), topics=TopicFields(*_OF_A_TOPIC, True), throttle_at=9
    ),
    ApiKey.OFFSET_FETCH: ServedApi("groups.offset_fetch"),
    ApiKey.FIND_COORDINATOR: ServedApi("cluster.find_coordinator"),
    ApiKey.JOIN_GROUP: ServedApi("groups.join_group", checks=(_READ_GROUP,)),
    ApiKey.HEARTBEAT: ServedApi("groups.heartbeat", checks=(_READ_GROUP,)),
    ApiKey.LEAVE_GROUP: ServedApi("groups.leave_group", checks=(_READ_GROUP,)),
    ApiKey.SYNC_GROUP: ServedApi("groups.sync_group", checks=(_READ_GROUP,)),
    ApiKey.DESCRIBE_GROUPS: ServedApi("groups.describe_groups"),
    ApiKey.LIST_GROUPS: ServedApi("groups.list_groups"),
    ApiKey.SASL_HANDSHAKE: ServedApi("cluster.sasl_handshake", "cluster.sasl_handshake", quota=Quota.NONE),
    ApiKey.API_VERSIONS: ServedApi("cluster.api_versions", "cluster.api_versions"),
    ApiKey.SASL_AUTHENTICATE: ServedApi("cluster.sasl_authenticate", "cluster.sasl_authenticate", quota=Quota.NONE),
    ApiKey.CREATE_TOPICS: ServedApi(
        "admin.create_topics",
        "admin.create_topics",
        checks=(Check(Operation.CREATE, ResourceType.TOPIC, or_cluster=Operation.CREATE),),
        topics=TopicFields(("topics",), "name", None, "", "topics", None),
        quota=Quota.CONTROLLER_MUTATION,
        is_searched=True,
    ),
    ApiKey.DELETE_TOPICS: ServedApi(
        "admin.delete_topics",
        "admin.delete_topics",
        topics=TopicFields(("topics", "topic_names"), "name", None, "", "responses", None),
        quota=Quota.CONTROLLER_MUTATION,
        is_searched=True,
    ),
    ApiKey.DELETE_RECORDS: ServedApi(
        "data.delete_records",
        checks=(Check(Operation.DELETE, ResourceType.TOPIC),),
        topics=TopicFields(*_OF_A_TOPIC),
        is_searched=True,
    ),
    ApiKey.INIT_PRODUCER_ID: ServedApi(
        "transactions.init_producer_id",
        checks=(_WRITE_TRANSACTION,),
        unstable_with="transaction_two_phase_commit_enable",
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ServedApi(
        "data.offset_for_leader_epoch",
        checks=(_DESCRIBE_TOPIC._replace(or_cluster=Operation.CLUSTER_ACTION),),
        topics=TopicFields(("topics",), "topic", "partitions", "partition", "topics", "partitions"),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: ServedApi("transactions.add_partitions_to_txn"),
    ApiKey.ADD_OFFSETS_TO_TXN: ServedApi("transactions.add_offsets_to_txn", checks=(_WRITE_TRANSACTION, _READ_GROUP)),
    ApiKey.END_TXN: ServedApi("transactions.end_txn", checks=(_WRITE_TRANSACTION,)),
    ApiKey.WRITE_TXN_MARKERS: ServedApi(
        "transactions.write_txn_markers", checks=(_NODE._replace(or_cluster=Operation.ALTER),), quota=Quota.NONE
    ),
    ApiKey.TXN_OFFSET_COMMIT: ServedApi(
        "transactions.txn_offset_commit",
        checks=(_WRITE_TRANSACTION, _READ_GROUP, _READ_TOPIC),
        topics=TopicFields(*_OF_A_TOPIC),
    ),
    ApiKey.DESCRIBE_ACLS: ServedApi("admin.describe_acls", "admin.describe_acls", checks=(_DESCRIBE_CLUSTER,)),
    ApiKey.CREATE_ACLS: ServedApi("admin.create_acls", "admin.create_acls", checks=(_ALTER_CLUSTER,), is_searched=True),
    ApiKey.DELETE_ACLS: ServedApi("admin.delete_acls", "admin.delete_acls", checks=(_ALTER_CLUSTER,), is_searched=True),
    ApiKey.CREATE_DELEGATION_TOKEN: ServedApi("admin.delegation_tokens", "admin.delegation_tokens", is_searched=True),
    ApiKey.RENEW_DELEGATION_TOKEN: ServedApi("admin.delegation_tokens", "admin.delegation_tokens", is_searched=True),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ServedApi("admin.delegation_tokens", "admin.delegation_tokens", is_searched=True),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ServedApi("admin.delegation_tokens", "admin.delegation_tokens"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ServedApi(
        "admin.describe_user_scram_credentials", "admin.describe_user_scram_credentials", checks=(_DESCRIBE_CLUSTER,)
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ServedApi(
        "admin.alter_user_scram_credentials",
        "admin.alter_user_scram_credentials",
        checks=(_ALTER_CLUSTER,),
        is_searched=True,
    ),
    ApiKey.DESCRIBE_CONFIGS: ServedApi(
        "admin.describe_configs",
        "admin.describe_configs",
        topics=TopicFields(("resources",), "resource_name", None, "", "results", None),
    ),
    ApiKey.ALTER_CONFIGS: ServedApi(
        "admin.alter_configs",
        "admin.alter_configs",
        topics=TopicFields(("resources",), "resource_name", None, "", "responses", None),
        is_searched=True,
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ServedApi("admin.alter_replica_log_dirs", checks=(_ALTER_CLUSTER,), is_searched=True),
    ApiKey.DESCRIBE_LOG_DIRS: ServedApi("admin.describe_log_dirs", checks=(_DESCRIBE_CLUSTER,)),
    ApiKey.CREATE_PARTITIONS: ServedApi(
        "admin.create_partitions",
        "admin.create_partitions",
        checks=(Check(Operation.ALTER, ResourceType.TOPIC),),
        topics=TopicFields(("topics",), "name", None, "", "results", None),
        quota=Quota.CONTROLLER_MUTATION,
        is_searched=True,
    ),
    ApiKey.DELETE_GROUPS: ServedApi("groups.delete_groups"),
    ApiKey.ELECT_LEADERS: ServedApi(
        "admin.elect_leaders",
        "admin.elect_leaders",
        checks=(_ALTER_CLUSTER,),
        topics=TopicFields(("topic_partitions",), "topic", "partitions", "", "replica_election_results", "partition_result"),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ServedApi(
        "admin.incremental_alter_configs",
        "admin.incremental_alter_configs",
        topics=TopicFields(("resources",), "resource_name", None, "", "responses", None),
        is_searched=True,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ServedApi(
        "admin.alter_partition_reassignments", "admin.alter_partition_reassignments", checks=(_ALTER_CLUSTER,)
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ServedApi(
        "admin.list_partition_reassignments", "admin.list_partition_reassignments", checks=(_DESCRIBE_CLUSTER,)
    ),
    ApiKey.OFFSET_DELETE: ServedApi(
        "groups.offset_delete",
        checks=(_DELETE_GROUP, _READ_TOPIC),
        topics=TopicFields(*_OF_A_TOPIC, are_asked_last=True),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ServedApi(
        "admin.describe_client_quotas", checks=(Check(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: ServedApi(
        "admin.alter_client_quotas",
        "admin.alter_client_quotas",
        checks=(Check(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),),
        is_searched=True,
    ),
    ApiKey.DESCRIBE_QUORUM: ServedApi(
        "cluster.describe_quorum", "cluster.describe_quorum", checks=(_DESCRIBE_CLUSTER,), quota=Quota.NONE
    ),
    ApiKey.UPDATE_FEATURES: ServedApi(
        "admin.update_features", "admin.update_features", checks=(_ALTER_CLUSTER,), is_searched=True
    ),
    ApiKey.DESCRIBE_CLUSTER: ServedApi(
        "cluster.describe_cluster", "cluster.describe_cluster", controller_checks=(_ALTER_CLUSTER,)
    ),
    ApiKey.DESCRIBE_PRODUCERS: ServedApi(
        "transactions.describe_producers",
        checks=(_READ_TOPIC,),
        topics=TopicFields(("topics",), "name", "partition_indexes", "", "topics", "partitions"),
    ),
    ApiKey.UNREGISTER_BROKER: ServedApi("admin.unregister_broker", "admin.unregister_broker", checks=(_ALTER_CLUSTER,)),
    ApiKey.DESCRIBE_TRANSACTIONS: ServedApi("transactions.describe_transactions"),
    ApiKey.LIST_TRANSACTIONS: ServedApi("transactions.list_transactions"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ServedApi("groups.consumer_group_heartbeat", checks=(_READ_GROUP,)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ServedApi("groups.consumer_group_describe"),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ServedApi("cluster.telemetry", served_with="metrics_address"),
    ApiKey.PUSH_TELEMETRY: ServedApi("cluster.telemetry", served_with="metrics_address"),
    ApiKey.LIST_CONFIG_RESOURCES: ServedApi(
        "admin.list_config_resources", checks=(Check(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ServedApi(
        "cluster.describe_topic_partitions", topics=TopicFields(("topics",), "name", None, "", "topics", None)
    ),
    ApiKey.ADD_RAFT_VOTER: ServedApi("admin.raft_voters", "nodes.replica_requests", checks=(_ALTER_CLUSTER,)),
    ApiKey.REMOVE_RAFT_VOTER: ServedApi("admin.raft_voters", "nodes.replica_requests", checks=(_ALTER_CLUSTER,)),
    # Between nodes, on controllers' listeners alone.
    ApiKey.ALTER_PARTITION: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.ENVELOPE: ServedApi(None, "nodes.envelope", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.BROKER_REGISTRATION: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.BROKER_HEARTBEAT: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.ALLOCATE_PRODUCER_IDS: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.CONTROLLER_REGISTRATION: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ServedApi(None, "nodes.controller_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.VOTE: ServedApi(None, "nodes.replica_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.BEGIN_QUORUM_EPOCH: ServedApi(None, "nodes.replica_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.END_QUORUM_EPOCH: ServedApi(None, "nodes.replica_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.FETCH_SNAPSHOT: ServedApi(None, "nodes.replica_requests", checks=(_NODE,), quota=Quota.NONE),
    ApiKey.UPDATE_RAFT_VOTER: ServedApi(None, "nodes.replica_requests", checks=(_NODE,), quota=Quota.NONE),
}

ON_BROKER: Final[dict[int, str]] = {
    key: api.on_broker for key, api in SERVED.items() if api.on_broker is not None and api.served_with is None
}
"""API → handler, on a broker's listeners."""
SERVED_WITH: Final[dict[int, tuple[str, str]]] = {
    key: (api.on_broker, api.served_with)
    for key, api in SERVED.items()
    if api.on_broker is not None and api.served_with is not None
}
"""API → handler, and the setting without which a broker does not serve it."""
ON_CONTROLLER: Final[dict[int, str]] = {key: api.on_controller for key, api in SERVED.items() if api.on_controller is not None}
"""API → handler, on a controller's listeners."""
UNSTABLE_WITH: Final[dict[int, str]] = {key: api.unstable_with for key, api in SERVED.items() if api.unstable_with is not None}
"""API → the setting with which its newest version is served."""


class HandlerModule(Protocol):
    """What every module in `handlers/` has."""

    def handle(self, context: RequestContext, request: Any, /) -> Handled: ...
    def refuse(self, context: RequestContext, request: Any, error: KafkaError, /) -> Message | None: ...


def load_handler(api_key: int, on_controller: bool = False) -> HandlerModule | None:
    """The module that serves an API on a broker's listener, or on a controller's; None if none does."""
    name = (ON_CONTROLLER if on_controller else ON_BROKER).get(api_key)
    return None if name is None else import_module(f"ottla.broker.handlers.{name}")


def load_optional(api_key: int, services: NodeServices) -> HandlerModule | None:
    """The module that serves an API of `SERVED_WITH` on a broker's listener; None where its setting is missing."""
    if not is_optional_served(api_key, services):
        return None
    return import_module(f"ottla.broker.handlers.{SERVED_WITH[api_key][0]}")


def is_optional_served(api_key: int, services: NodeServices) -> bool:
    """Whether the settings say that an API of `SERVED_WITH` is served."""
    return api_key in SERVED_WITH and getattr(services.settings.current, SERVED_WITH[api_key][1]) is not None


def versions_served(api_key: int, services: NodeServices) -> tuple[int, int]:
    """The oldest and newest version that ApiVersions advertises."""
    setting = UNSTABLE_WITH.get(api_key)
    return APIS[api_key].advertised(setting is not None and getattr(services.settings.current, setting))


def checks_of(api_key: int, on_controller: bool) -> tuple[Check, ...]:
    """What requests of an API need on a broker's listener, or on a controller's.

    A broker checks nothing of what it forwards: the controller does, with the client's principal.
    """
    api = SERVED[api_key]
    if on_controller:
        return api.checks if api.controller_checks is None else api.controller_checks
    return () if APIS[api_key].is_forwardable else api.checks
