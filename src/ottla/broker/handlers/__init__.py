"""One module per API, imported when its first request comes.

A handler's module has two plain functions:

    handle(context: RequestContext, request) -> Handled   the response, now or later (`requests/context.py`)
    refuse(context: RequestContext, request, error: KafkaError) -> Message | None   the API's response to a failed request

`MODULES` is the one list of what a broker's listeners serve, `ON_CONTROLLER` of what a controller's listeners serve:
ApiVersions advertises them, dispatch serves them, docs/apis.md is generated from them. The versions of each API are Kafka's
(`ottla.wire.apis`). A version that is unstable in Kafka is served if a setting asks for it (`UNSTABLE_WITH`).

A handler's header notes what each version of its API changed, where the handler or its client notices. Versions that only
changed the encoding are not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS

if TYPE_CHECKING:
    from ottla.broker.services import NodeServices

MODULES: Final[dict[int, str]] = {
    ApiKey.PRODUCE: "data.produce",
    ApiKey.FETCH: "data.fetch",
    ApiKey.LIST_OFFSETS: "data.list_offsets",
    ApiKey.METADATA: "cluster.metadata",
    ApiKey.OFFSET_COMMIT: "groups.offset_commit",
    ApiKey.OFFSET_FETCH: "groups.offset_fetch",
    ApiKey.FIND_COORDINATOR: "cluster.find_coordinator",
    ApiKey.JOIN_GROUP: "groups.join_group",
    ApiKey.HEARTBEAT: "groups.heartbeat",
    ApiKey.LEAVE_GROUP: "groups.leave_group",
    ApiKey.SYNC_GROUP: "groups.sync_group",
    ApiKey.DESCRIBE_GROUPS: "groups.describe_groups",
    ApiKey.LIST_GROUPS: "groups.list_groups",
    ApiKey.API_VERSIONS: "cluster.api_versions",
    ApiKey.CREATE_TOPICS: "admin.create_topics",
    ApiKey.DELETE_TOPICS: "admin.delete_topics",
    ApiKey.DELETE_RECORDS: "data.delete_records",
    ApiKey.INIT_PRODUCER_ID: "transactions.init_producer_id",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "data.offset_for_leader_epoch",
    ApiKey.ADD_PARTITIONS_TO_TXN: "transactions.add_partitions_to_txn",
    ApiKey.ADD_OFFSETS_TO_TXN: "transactions.add_offsets_to_txn",
    ApiKey.END_TXN: "transactions.end_txn",
    ApiKey.WRITE_TXN_MARKERS: "transactions.write_txn_markers",
    ApiKey.TXN_OFFSET_COMMIT: "transactions.txn_offset_commit",
    ApiKey.DESCRIBE_CONFIGS: "admin.describe_configs",
    ApiKey.ALTER_CONFIGS: "admin.alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "admin.alter_replica_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "admin.describe_log_dirs",
    ApiKey.CREATE_PARTITIONS: "admin.create_partitions",
    ApiKey.DELETE_GROUPS: "groups.delete_groups",
    ApiKey.ELECT_LEADERS: "admin.elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "admin.incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "admin.alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "admin.list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "groups.offset_delete",
    ApiKey.DESCRIBE_QUORUM: "cluster.describe_quorum",
    ApiKey.UPDATE_FEATURES: "admin.update_features",
    ApiKey.DESCRIBE_CLUSTER: "cluster.describe_cluster",
    ApiKey.DESCRIBE_PRODUCERS: "transactions.describe_producers",
    ApiKey.UNREGISTER_BROKER: "controller.unregister_broker",
    ApiKey.DESCRIBE_TRANSACTIONS: "transactions.describe_transactions",
    ApiKey.LIST_TRANSACTIONS: "transactions.list_transactions",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "groups.consumer_group_heartbeat",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "groups.consumer_group_describe",
    ApiKey.LIST_CONFIG_RESOURCES: "admin.list_config_resources",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "cluster.describe_topic_partitions",
    ApiKey.ADD_RAFT_VOTER: "admin.raft_voters",
    ApiKey.REMOVE_RAFT_VOTER: "admin.raft_voters",
}

ON_CONTROLLER: Final[dict[int, str]] = {
    ApiKey.API_VERSIONS: "cluster.api_versions",
    ApiKey.CREATE_TOPICS: "admin.create_topics",
    ApiKey.DELETE_TOPICS: "admin.delete_topics",
    ApiKey.DESCRIBE_CONFIGS: "admin.describe_configs",
    ApiKey.ALTER_CONFIGS: "admin.alter_configs",
    ApiKey.CREATE_PARTITIONS: "admin.create_partitions",
    ApiKey.ELECT_LEADERS: "admin.elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "admin.incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "admin.alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "admin.list_partition_reassignments",
    ApiKey.DESCRIBE_QUORUM: "cluster.describe_quorum",
    ApiKey.ALTER_PARTITION: "controller.alter_partition",
    ApiKey.UPDATE_FEATURES: "admin.update_features",
    ApiKey.DESCRIBE_CLUSTER: "cluster.describe_cluster",
    ApiKey.ENVELOPE: "controller.envelope",
    ApiKey.BROKER_REGISTRATION: "controller.broker_registration",
    ApiKey.BROKER_HEARTBEAT: "controller.broker_heartbeat",
    ApiKey.UNREGISTER_BROKER: "controller.unregister_broker",
    ApiKey.ALLOCATE_PRODUCER_IDS: "controller.allocate_producer_ids",
    ApiKey.CONTROLLER_REGISTRATION: "controller.controller_registration",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "controller.assign_replicas_to_dirs",
    ApiKey.VOTE: "raft.replica_requests",
    ApiKey.BEGIN_QUORUM_EPOCH: "raft.replica_requests",
    ApiKey.END_QUORUM_EPOCH: "raft.replica_requests",
    ApiKey.FETCH: "raft.replica_requests",
    ApiKey.FETCH_SNAPSHOT: "raft.replica_requests",
    ApiKey.ADD_RAFT_VOTER: "raft.replica_requests",
    ApiKey.REMOVE_RAFT_VOTER: "raft.replica_requests",
    ApiKey.UPDATE_RAFT_VOTER: "raft.replica_requests",
}

UNSTABLE_WITH: Final[dict[int, str]] = {ApiKey.INIT_PRODUCER_ID: "transaction_two_phase_commit_enable"}
"""API → the setting with which its newest version is served, though it is unstable in Kafka 4.3."""


def versions_served(api_key: int, services: NodeServices) -> tuple[int, int]:
    """The oldest and newest version that ApiVersions advertises."""
    setting = UNSTABLE_WITH.get(api_key)
    return APIS[api_key].advertised(setting is not None and getattr(services.settings.current, setting))
