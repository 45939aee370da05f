"""DescribeConfigs: the settings of topics, brokers, loggers, groups and client metrics, with the source of each value.

A few bytes of a request can ask for a hundred entries of a response, each with its documentation. So a resource that is named
more than once is answered once, a response takes no further resource after `ENTRIES_MAX` entries, and long responses are made
in slices.

v3: types and documentation of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.handlers.admin.config_changes import require_access
from ottla.broker.handlers.admin.config_entries import LOGGER_SOURCE, EntryMaker
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import in_slices
from ottla.env import Reserve
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import topic_name_fault
from ottla.metadata.acls import Operation
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

if TYPE_CHECKING:
    from ottla.env import Steps

ENTRIES_MAX = 60_000
"""A response with this many entries takes no further resource; that is all settings of 1,700 topics."""

ENTRY_BYTES = 700
"""With synonyms. While a response is made it is about three times as large as when it is encoded."""
ENTRIES = {ResourceType.TOPIC: 40, ResourceType.BROKER: 260}
ENTRIES_OF_OTHERS = 20
FREE_ENTRIES = 300
"""Smaller responses reserve no memory: one broker, a few topics."""


def handle(context: RequestContext, request: DescribeConfigsRequest) -> Handled:
    resources = request.resources
    if len(resources) > 1:
        resources = list({(each.resource_type, each.resource_name): each for each in resources}.values())
    maker = EntryMaker(context.services.settings, request.include_synonyms, request.include_documentation)
    return in_slices(context, _describe_all(_results(context, maker, resources), _expected_entries(resources)))


def _expected_entries(resources: Iterable[DescribeConfigsResource]) -> int:
    return min(ENTRIES_MAX, sum([ENTRIES.get(each.resource_type, ENTRIES_OF_OTHERS) for each in resources]))  # type: ignore[call-overload]


def _describe_all(results: Iterator[DescribeConfigsResult], expected_entries: int) -> Steps[Handled]:
    if expected_entries > FREE_ENTRIES:
        yield Reserve(expected_entries * ENTRY_BYTES)
    response = DescribeConfigsResponse()
    for result in results:
        response.results.append(result)
        yield None
    return response


def _results(
    context: RequestContext, maker: EntryMaker, resources: Iterable[DescribeConfigsResource]
) -> Iterator[DescribeConfigsResult]:
    left = ENTRIES_MAX
    denied: list[DescribeConfigsResult] = []
    for resource in resources:
        result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            require_access(context, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
            denied.append(result)
            continue
        try:
            if left <= 0:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"one response has room for {ENTRIES_MAX} settings: ask for fewer resources at once",
                )
            result.configs = _entries(context, maker, resource)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        left -= len(result.configs)
        yield result
    yield from denied


def refuse(context: RequestContext, request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=error.code,
                error_message=str(error),
            )
            for resource in request.resources
        ]
    )


def _entries(
    context: RequestContext, maker: EntryMaker, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    services, name = context.services, resource.resource_name
    wanted = _wanted(resource.configuration_keys)
    if resource.resource_type == ResourceType.TOPIC:
        if (fault := topic_name_fault(name)) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if services.metadata.topic(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return maker.topic_entries(name, wanted)
    if resource.resource_type == ResourceType.BROKER:
        if not name:
            return maker.all_brokers_entries(wanted)
        _check_broker(name, services.node_id)
        return maker.broker_entries(wanted)
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        _check_broker(name, services.node_id)
        levels = services.settings.loggers.levels()
        return [
            DescribeConfigsResourceResult(name=logger, value=level, config_source=LOGGER_SOURCE)
            for logger, level in levels.items()
            if wanted(logger)
        ]
    if resource.resource_type in (ResourceType.CLIENT_METRICS, ResourceType.GROUP):
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of a group or client metrics subscription must not be empty")
        own = services.metadata.image.configs.get((resource.resource_type, name), {})
        of_group = resource.resource_type == ResourceType.GROUP
        return maker.group_entries(own, wanted) if of_group else maker.client_metrics_entries(own, wanted)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type} that has settings")


def _wanted(keys: list[str] | None) -> Callable[[str], bool]:
    """A function that says whether a setting is requested; no keys mean all settings."""
    return frozenset(keys).__contains__ if keys else lambda name: True


def _check_broker(name: str, node_id: int) -> None:
    if name != str(node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node_id}, which cannot tell the settings of broker {name!r}: ask that broker",
        )
