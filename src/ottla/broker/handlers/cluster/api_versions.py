"""ApiVersions: which APIs are served on this listener, in which versions, and which features the cluster has.

The APIs are those in `handlers.MODULES`, or `handlers.ON_CONTROLLER`. A version of ApiVersions that is not served is refused in
version 0, which every client can read; the error response names the versions that are served.

v3: name and version of the client's software; features. v4: supported features whose lowest level is 0, which older clients
take for an error.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.broker.requests.apis import ON_BROKER, ON_CONTROLLER, SERVED_WITH, is_optional_served, versions_served
from ottla.broker.requests.context import RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from ottla.wire.apis import ApiKey
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_SINCE: Final = 3
LEVEL_ZERO_SINCE: Final = 4
_FETCHER: Final = re.compile(r"broker-\d+-(replica-fetcher|fetcher-\d+)")
"""The client ids of brokers' fetchers: Ottla's, and Apache Kafka's."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= SOFTWARE_SINCE:
        _note_software(context, request)
    if context.connection.login is not None:
        context.connection.login.versions_told()
    context.connection.is_follower = _FETCHER.fullmatch(context.client_id or "") is not None
    metadata = context.services.metadata
    finalised = dict(metadata.image.features)
    if (kraft_version := context.services.quorum.kraft_version) > 0:
        finalised[KRAFT_VERSION] = kraft_version
    return ApiVersionsResponse(
        api_keys=[_version(context, key) for key in _served(context)],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in sorted(SUPPORTED_FEATURES.items())
            if lowest > 0 or context.version >= LEVEL_ZERO_SINCE
        ],
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(finalised.items())
        ],
        # As in Apache Kafka: a controller gives the offset of the last feature change, a broker that of its metadata image.
        finalized_features_epoch=metadata.features_offset
        if context.connection.is_controller_listener
        else metadata.image.provenance.offset,
    )


def refuse(context: RequestContext, request: ApiVersionsRequest, error: KafkaError) -> ApiVersionsResponse:
    known = [_version(context, ApiKey.API_VERSIONS)] if error.code == ErrorCode.UNSUPPORTED_VERSION else []
    return ApiVersionsResponse(error_code=error.code, api_keys=known)


def served(is_controller_listener: bool) -> list[int]:
    """The keys of the APIs that a listener serves, in order."""
    return sorted(ON_CONTROLLER if is_controller_listener else ON_BROKER)


def _served(context: RequestContext) -> list[int]:
    keys = served(context.connection.is_controller_listener)
    if context.connection.is_controller_listener:
        return keys
    return sorted([*keys, *(key for key in SERVED_WITH if is_optional_served(key, context.services))])


def _version(context: RequestContext, api_key: int) -> ApiVersion:
    oldest, newest = versions_served(api_key, context.services)
    return ApiVersion(api_key=api_key, min_version=oldest, max_version=newest)


def _note_software(context: RequestContext, request: ApiVersionsRequest) -> None:
    """Remember name and version of the client's software; INVALID_REQUEST if they have characters that are not allowed."""
    name, version = request.client_software_name, request.client_software_version
    for text in (name, version):
        if _SOFTWARE.fullmatch(text) is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{text[:100]!r} is no name or version of client software: it must be letters, digits, dashes and dots, and "
                "neither begin nor end with a dash or a dot",
            )
    context.connection.client_software_name = name
    context.connection.client_software_version = version
