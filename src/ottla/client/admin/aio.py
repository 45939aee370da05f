"""The asyncio face of the Admin client: `ottla.aio.Admin`. Each method is one function of this folder."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from ottla.client.admin import (
    acls,
    cluster_state,
    configs,
    group_descriptions,
    group_offsets,
    groups,
    log_dirs,
    offsets,
    producers,
    quorum,
    quotas,
    reassignments,
    scram,
    tokens,
    topic_descriptions,
    topics,
    transactions,
)
from ottla.client.admin.core import AdminCore, awaiting, checked_timeout
from ottla.client.faces import MeasuredFace, admin_dropped, on_loop
from ottla.client.metrics import ClientMetrics
from ottla.client.world import ClientWorld, real_client_world
from ottla.config.client import admin_settings
from ottla.env.threads import Lineage

if TYPE_CHECKING:
    from ottla.client.keywords import AdminKeywords
    from ottla.client.type_parameters import Servers


class Admin(MeasuredFace):
    """Manages a cluster: one coroutine for each thing that Kafka's Admin does.

        async with aio.Admin("localhost:9092") as admin:
            await admin.create_topics({"orders": 3})

    Settings have Kafka's names with underscores as keywords (`request_timeout_ms=5000`), or with dots in `config`. With
    `bootstrap_controllers` in place of bootstrap servers, the controllers are asked (KIP-919). A call about many items returns
    `Results`: a value or an error for each. A call takes at most default.api.timeout.ms for each of its steps.
    """

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        world: ClientWorld | None = None,
        **settings: Unpack[AdminKeywords],
    ) -> None:
        world = world or real_client_world()
        self._core = AdminCore(admin_settings(bootstrap_servers, config, settings), world)
        self._timeout_s: float | None = None
        self._owner: Admin | None = None
        """Of the result of `with_timeout`: the client that it belongs to, which must not be dropped before."""
        lineage = world.threads.lineage()
        self._finalizer = weakref.finalize(self, _abandoned, self._core, lineage, lineage.generation)

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections. Calls that are under way fail."""
        self._finalizer.detach()
        await self._core.close()

    def with_timeout(self, seconds: float) -> Admin:
        """The same client, whose calls each take at most this long: `admin.with_timeout(5).list_topics()`."""
        view = object.__new__(Admin)
        view._core, view._timeout_s = self._core, checked_timeout(seconds)
        view._owner, view._finalizer = self, self._finalizer
        return view

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.metrics

    # Topics

    create_topics = awaiting(topics.create_topics)
    delete_topics = awaiting(topics.delete_topics)
    create_partitions = awaiting(topics.create_partitions)
    list_topics = awaiting(topic_descriptions.list_topics)
    describe_topics = awaiting(topic_descriptions.describe_topics)

    # Records and offsets

    list_offsets = awaiting(offsets.list_offsets)
    delete_records = awaiting(offsets.delete_records)

    # Settings

    describe_configs = awaiting(configs.describe_configs)
    alter_configs = awaiting(configs.alter_configs)
    list_config_resources = awaiting(configs.list_config_resources)
    list_client_metrics_resources = awaiting(configs.list_client_metrics_resources)

    # Groups

    list_groups = awaiting(groups.list_groups)
    list_reachable_groups = awaiting(groups.list_reachable_groups)
    list_consumer_groups = awaiting(groups.list_consumer_groups)
    delete_consumer_groups = awaiting(groups.delete_consumer_groups)
    remove_members = awaiting(groups.remove_members)
    describe_consumer_groups = awaiting(group_descriptions.describe_consumer_groups)
    describe_classic_groups = awaiting(group_descriptions.describe_classic_groups)
    list_consumer_group_offsets = awaiting(group_offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = awaiting(group_offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = awaiting(group_offsets.delete_consumer_group_offsets)

    # Access

    describe_acls = awaiting(acls.describe_acls)
    create_acls = awaiting(acls.create_acls)
    delete_acls = awaiting(acls.delete_acls)
    describe_client_quotas = awaiting(quotas.describe_client_quotas)
    alter_client_quotas = awaiting(quotas.alter_client_quotas)
    describe_user_scram_credentials = awaiting(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = awaiting(scram.alter_user_scram_credentials)
    create_delegation_token = awaiting(tokens.create_delegation_token)
    renew_delegation_token = awaiting(tokens.renew_delegation_token)
    expire_delegation_token = awaiting(tokens.expire_delegation_token)
    describe_delegation_tokens = awaiting(tokens.describe_delegation_tokens)

    # Replicas

    describe_log_dirs = awaiting(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = awaiting(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = awaiting(log_dirs.alter_replica_log_dirs)
    alter_partition_reassignments = awaiting(reassignments.alter_partition_reassignments)
    list_partition_reassignments = awaiting(reassignments.list_partition_reassignments)
    elect_leaders = awaiting(reassignments.elect_leaders)

    # Transactions

    list_transactions = awaiting(transactions.list_transactions)
    describe_transactions = awaiting(transactions.describe_transactions)
    fence_producers = awaiting(transactions.fence_producers)
    force_terminate_transaction = awaiting(transactions.force_terminate_transaction)
    describe_producers = awaiting(producers.describe_producers)
    abort_transaction = awaiting(producers.abort_transaction)

    # Cluster

    describe_cluster = awaiting(cluster_state.describe_cluster)
    unregister_broker = awaiting(cluster_state.unregister_broker)
    describe_features = awaiting(cluster_state.describe_features)
    update_features = awaiting(cluster_state.update_features)
    client_instance_id = awaiting(cluster_state.client_instance_id)
    describe_metadata_quorum = awaiting(quorum.describe_metadata_quorum)
    add_raft_voter = awaiting(quorum.add_raft_voter)
    remove_raft_voter = awaiting(quorum.remove_raft_voter)


def _abandoned(core: AdminCore, lineage: Lineage, generation: int) -> None:
    """An Admin was garbage collected, or the process exits, without `close`. One that was never used has nothing to end."""
    if core.loop is not None and lineage.generation == generation:
        admin_dropped()
        on_loop(core.loop, core.abandon)
