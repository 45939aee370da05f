"""The synchronous face of the Admin client: `ottla.Admin`. Each method is one function of this folder.

The functions run on an event loop in a thread of the client's own (`env/threads.py`), so several threads may use one client.
"""

from __future__ import annotations

import weakref
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

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
from ottla.client.admin.core import AdminCore, blocking, checked_timeout
from ottla.client.faces import MeasuredFace, admin_dropped
from ottla.client.metrics import ClientMetrics
from ottla.client.world import ClientWorld, real_client_world
from ottla.config.client import admin_settings
from ottla.env.threads import Lineage, LoopThread
from ottla.errors import IllegalStateError

if TYPE_CHECKING:
    from ottla.client.keywords import AdminKeywords
    from ottla.client.type_parameters import Servers

R = TypeVar("R")

STOP_TIMEOUT_S = 5.0


class Admin(MeasuredFace):
    """Manages a cluster: one method for each thing that Kafka's Admin does. Threads may share it.

        with Admin("localhost:9092") as admin:
            admin.create_topics({"orders": 3})

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
        self._thread: LoopThread = world.threads.start_loop("ottla-admin")
        self._timeout_s: float | None = None
        self._owner: Admin | None = None
        """Of the result of `with_timeout`: the client that it belongs to, which must not be dropped before."""
        lineage = world.threads.lineage()
        self._finalizer = weakref.finalize(self, _abandoned, self._thread, lineage, lineage.generation)

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all connections and the thread. Calls that are under way in other threads fail."""
        self._finalizer.detach()
        if self._thread.is_alive:
            with suppress(CancelledError, RuntimeError):  # another thread closes it too, and its event loop has ended
                self._thread.call(self._core.close)
            self._thread.stop(STOP_TIMEOUT_S)

    def with_timeout(self, seconds: float) -> Admin:
        """The same client, whose calls each take at most this long: `admin.with_timeout(5).list_topics()`."""
        view = object.__new__(Admin)
        view._core, view._thread, view._timeout_s = self._core, self._thread, checked_timeout(seconds)
        view._owner, view._finalizer = self, self._finalizer
        return view

    @property
    def _measured(self) -> ClientMetrics:
        return self._core.metrics

    def _call(self, start: Callable[[], Coroutine[Any, Any, R]]) -> R:
        if self._thread.is_alive:
            try:
                return self._thread.call(start)
            except (CancelledError, RuntimeError):
                if not self._core.is_closed:
                    raise
                # Another thread has closed it, and its event loop has ended.
        raise IllegalStateError("this Admin is closed, or was made before a fork: make a new one")

    # Topics

    create_topics = blocking(topics.create_topics)
    delete_topics = blocking(topics.delete_topics)
    create_partitions = blocking(topics.create_partitions)
    list_topics = blocking(topic_descriptions.list_topics)
    describe_topics = blocking(topic_descriptions.describe_topics)

    # Records and offsets

    list_offsets = blocking(offsets.list_offsets)
    delete_records = blocking(offsets.delete_records)

    # Settings

    describe_configs = blocking(configs.describe_configs)
    alter_configs = blocking(configs.alter_configs)
    list_config_resources = blocking(configs.list_config_resources)
    list_client_metrics_resources = blocking(configs.list_client_metrics_resources)

    # Groups

    list_groups = blocking(groups.list_groups)
    list_reachable_groups = blocking(groups.list_reachable_groups)
    list_consumer_groups = blocking(groups.list_consumer_groups)
    delete_consumer_groups = blocking(groups.delete_consumer_groups)
    remove_members = blocking(groups.remove_members)
    describe_consumer_groups = blocking(group_descriptions.describe_consumer_groups)
    describe_classic_groups = blocking(group_descriptions.describe_classic_groups)
    list_consumer_group_offsets = blocking(group_offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = blocking(group_offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = blocking(group_offsets.delete_consumer_group_offsets)

    # Access

    describe_acls = blocking(acls.describe_acls)
    create_acls = blocking(acls.create_acls)
    delete_acls = blocking(acls.delete_acls)
    describe_client_quotas = blocking(quotas.describe_client_quotas)
    alter_client_quotas = blocking(quotas.alter_client_quotas)
    describe_user_scram_credentials = blocking(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(scram.alter_user_scram_credentials)
    create_delegation_token = blocking(tokens.create_delegation_token)
    renew_delegation_token = blocking(tokens.renew_delegation_token)
    expire_delegation_token = blocking(tokens.expire_delegation_token)
    describe_delegation_tokens = blocking(tokens.describe_delegation_tokens)

    # Replicas

    describe_log_dirs = blocking(log_dirs.describe_log_dirs)
    describe_replica_log_dirs = blocking(log_dirs.describe_replica_log_dirs)
    alter_replica_log_dirs = blocking(log_dirs.alter_replica_log_dirs)
    alter_partition_reassignments = blocking(reassignments.alter_partition_reassignments)
    list_partition_reassignments = blocking(reassignments.list_partition_reassignments)
    elect_leaders = blocking(reassignments.elect_leaders)

    # Transactions

    list_transactions = blocking(transactions.list_transactions)
    describe_transactions = blocking(transactions.describe_transactions)
    fence_producers = blocking(transactions.fence_producers)
    force_terminate_transaction = blocking(transactions.force_terminate_transaction)
    describe_producers = blocking(producers.describe_producers)
    abort_transaction = blocking(producers.abort_transaction)

    # Cluster

    describe_cluster = blocking(cluster_state.describe_cluster)
    unregister_broker = blocking(cluster_state.unregister_broker)
    describe_features = blocking(cluster_state.describe_features)
    update_features = blocking(cluster_state.update_features)
    client_instance_id = blocking(cluster_state.client_instance_id)
    describe_metadata_quorum = blocking(quorum.describe_metadata_quorum)
    add_raft_voter = blocking(quorum.add_raft_voter)
    remove_raft_voter = blocking(quorum.remove_raft_voter)


def _abandoned(thread: LoopThread, lineage: Lineage, generation: int) -> None:
    """An Admin was garbage collected, or the process exits, without `close`."""
    if lineage.generation == generation:
        admin_dropped()
        thread.stop(0.1)
