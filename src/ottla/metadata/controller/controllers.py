"""Decides on ControllerRegistration: stores each controller's endpoints and supported features. Pure."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import CONTROLLER_REGISTRATION_FROM, METADATA_VERSION, metadata_version_name
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from ottla.wire.messages.metadata_records import ControllerEndpoint, ControllerFeature, RegisterControllerRecord


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest, now_ms: int
) -> Decision[ControllerRegistrationResponse]:
    """Register a controller's endpoints and supported features."""
    if state.image.metadata_version < CONTROLLER_REGISTRATION_FROM:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"controllers register from {METADATA_VERSION} {metadata_version_name(CONTROLLER_REGISTRATION_FROM)} on, and this "
            f"cluster is at {metadata_version_name(state.image.metadata_version)}",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ],
        features=[
            ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [record])
