"""UpdateFeatures: the controller decides. Version 0 knows only "allow a downgrade", later ones how unsafe it may be."""

from __future__ import annotations

from ottla.broker.handlers.controller_calls import ask_controller
from ottla.broker.request import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.metadata.controller.features import update_features
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

_SAFE_DOWNGRADE = 2


def handle(context: RequestContext, request: UpdateFeaturesRequest) -> Handled:
    if context.version == 0:
        for update in request.feature_updates:
            if update.allow_downgrade:
                update.upgrade_type = _SAFE_DOWNGRADE
    return ask_controller(context, lambda state, now_ms: update_features(state, request, now_ms), request.timeout_ms)


def refuse(context: RequestContext, request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=str(error))
