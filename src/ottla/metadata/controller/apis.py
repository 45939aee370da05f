"""The APIs that the controller decides: API key → decision. One table for local callers and for requests from other nodes.

A decision's module is imported when its first request comes. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.state import ControllerState
from ottla.wire.api_table import ApiKey

Decide = Callable[[ControllerState, Any, int, Asker], Decision[Any]]
"""(state, request, now_ms, who asks) → decision; raises `KafkaError` to refuse."""

DECISIONS: Final[dict[int, tuple[str, str]]] = {
    ApiKey.CREATE_TOPICS: ("topics", "create_topics"),
    ApiKey.DELETE_TOPICS: ("topics", "delete_topics"),
    ApiKey.CREATE_ACLS: ("acls", "create_acls"),
    ApiKey.DELETE_ACLS: ("acls", "delete_acls"),
    ApiKey.ALTER_CONFIGS: ("config_responses", "alter_configs"),
    ApiKey.CREATE_PARTITIONS: ("topics", "create_partitions"),
    ApiKey.ELECT_LEADERS: ("elections", "elect_leaders"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("config_responses", "incremental_alter_configs"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("reassignments", "alter_reassignments"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("reassignment_list", "list_reassignments"),
    ApiKey.ALTER_PARTITION: ("alter_partition", "alter_partition"),
    ApiKey.ALTER_CLIENT_QUOTAS: ("client_quotas", "alter_client_quotas"),
    ApiKey.UPDATE_FEATURES: ("features", "update_features"),
    ApiKey.BROKER_REGISTRATION: ("brokers", "register_broker"),
    ApiKey.BROKER_HEARTBEAT: ("brokers", "broker_heartbeat"),
    ApiKey.UNREGISTER_BROKER: ("brokers", "unregister_broker"),
    ApiKey.ALLOCATE_PRODUCER_IDS: ("producer_ids", "allocate_producer_ids"),
    ApiKey.CONTROLLER_REGISTRATION: ("controllers", "register_controller"),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ("directories", "assign_replicas_to_dirs"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("scram_credentials", "alter_scram_credentials"),
    ApiKey.CREATE_DELEGATION_TOKEN: ("delegation_tokens", "create_token"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("delegation_tokens", "renew_token"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("delegation_tokens", "expire_token"),
}
"""API key → module of this package, and function."""

_BY_ASKER: Final = frozenset(
    {
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.UPDATE_FEATURES),
        *(ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN),
    }
)
"""Their response depends on the version of the request or on who asks."""

_found: dict[int, Decide] = {}


def decision_of(api_key: int) -> Decide:
    """The decision on an API's requests; `KeyError` if the controller decides nothing for it."""
    decide = _found.get(api_key)
    if decide is None:
        module, name = DECISIONS[api_key]
        function = getattr(import_module(f"ottla.metadata.controller.{module}"), name)
        decide = _found[api_key] = function if api_key in _BY_ASKER else _without_asker(function)
    return decide


def _without_asker(function: Callable[[ControllerState, Any, int], Decision[Any]]) -> Decide:
    return lambda state, request, now_ms, asker: function(state, request, now_ms)
