"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): what a client is asked to push, and what it pushes.

Served only by brokers that publish it, which have a port for metrics: like a broker of Kafka without a receiver, others do not
advertise these APIs, and clients leave them alone. `client_telemetry.py` decides. Large pushes are read in a worker thread.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.client_telemetry import CODECS, RESERVED_IDS, ClientFacts, ClientTelemetry, read_push
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.ids import Uuid, uuid_text
from ottla.metadata.image.image import ResourceType
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

ON_LOOP_BYTES = 2_048
"""Smaller pushes are read at once: a worker thread would cost more."""


def handle(context: RequestContext, request: GetTelemetrySubscriptionsRequest | PushTelemetryRequest) -> Handled:
    telemetry = context.services.telemetry
    assert telemetry is not None, "the API is served only where there is one"
    if isinstance(request, PushTelemetryRequest):
        return _push(context, request, telemetry)
    instance_id = request.client_instance_id
    if int.from_bytes(instance_id, "big") < RESERVED_IDS:
        instance_id = context.services.world.randomness.new_uuid()
    facts = _facts(context, instance_id)
    subscription = telemetry.subscribe(instance_id, facts, _configs(context), _now_ms(context))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=subscription.id,
        accepted_compression_types=[int(each) for each in CODECS],
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=context.services.settings.current.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(subscription.metrics),
    )


def _push(context: RequestContext, request: PushTelemetryRequest, telemetry: ClientTelemetry) -> Handled:
    instance_id = request.client_instance_id
    telemetry.check_push(
        instance_id,
        _facts(context, instance_id),
        _configs(context),
        request.subscription_id,
        request.compression_type,
        len(request.metrics),
        context.services.settings.current.telemetry_max_bytes,
        request.terminating,
        _now_ms(context),
    )
    content, codec = bytes(request.metrics), request.compression_type
    if len(content) <= ON_LOOP_BYTES:
        telemetry.push(instance_id, *read_push(codec, content))
        return PushTelemetryResponse()

    async def read() -> PushTelemetryResponse:
        telemetry.push(instance_id, *await context.services.scheduler.workers.run(partial(read_push, codec, content)))
        return PushTelemetryResponse()

    return PendingTask(read())


def refuse(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest | PushTelemetryRequest, error: KafkaError
) -> GetTelemetrySubscriptionsResponse | PushTelemetryResponse:
    if isinstance(request, PushTelemetryRequest):
        return PushTelemetryResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(error_code=error.code)


def _now_ms(context: RequestContext) -> int:
    return int(context.services.world.clock.monotonic_s() * 1000)


def _configs(context: RequestContext) -> dict[str, dict[str, str]]:
    configs = context.services.metadata.image.configs
    return {name: dict(each) for (type_, name), each in configs.items() if type_ == ResourceType.CLIENT_METRICS}


def _facts(context: RequestContext, instance_id: Uuid) -> ClientFacts:
    connection = context.connection
    return ClientFacts(
        context.client_id or "",
        uuid_text(instance_id),
        connection.client_software_name,
        connection.client_software_version,
        connection.peer[0],
        str(connection.peer[1]),
    )
