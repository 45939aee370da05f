"""Decides on AlterConfigs and IncrementalAlterConfigs requests: the decisions of `configs.py`, with response messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller import configs
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.image import ConfigResource
from ottla.wire.messages import alter_configs as alter
from ottla.wire.messages import incremental_alter_configs as incremental


class _Resource(Protocol):
    resource_type: int
    resource_name: str


Response = TypeVar("Response", alter.AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse)


def alter_configs(
    state: ControllerState, request: alter.AlterConfigsRequest, now_ms: int
) -> Decision[alter.AlterConfigsResponse]:
    """Replace all settings of each resource."""
    decision = configs.alter_configs(state, request, now_ms)
    entries = resource_responses(alter.AlterConfigsResourceResponse, request.resources, decision.response)
    return Decision(alter.AlterConfigsResponse(responses=entries), decision.records)


def incremental_alter_configs(
    state: ControllerState, request: incremental.IncrementalAlterConfigsRequest, now_ms: int
) -> Decision[incremental.IncrementalAlterConfigsResponse]:
    """Set, remove, append to and subtract from single settings."""
    decision = configs.incremental_alter_configs(state, request, now_ms)
    entries = resource_responses(incremental.AlterConfigsResourceResponse, request.resources, decision.response)
    return Decision(incremental.IncrementalAlterConfigsResponse(responses=entries), decision.records)


def resource_responses(
    kind: type[Response], resources: Sequence[_Resource], outcomes: Mapping[ConfigResource, KafkaError | None]
) -> list[Response]:
    """One entry per resource, in the order of the request."""
    entries = []
    for resource in resources:
        error = outcomes[resource.resource_type, resource.resource_name]
        entries.append(
            kind(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else str(error),
            )
        )
    return entries
