"""UpdateFeatures: changes the levels of the cluster's features. The controller decides.

v0: its AllowDowngrade is ignored, as Apache Kafka's controller does: every change is an upgrade. v1: upgrade type, validate
only. v2: no results for single features.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle(context: RequestContext, request: UpdateFeaturesRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(context: RequestContext, request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=str(error))
