"""ControllerRegistrationRequest, ControllerRegistrationResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class Feature(Struct):
    __slots__ = ("name", "min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = None


class Listener(Struct):
    __slots__ = ("name", "host", "port", "security_protocol")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self.unknown_tags = None


class ControllerRegistrationRequest(Message):
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "listeners", "features")

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: Uuid = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.unknown_tags = None

    KEY = 70
    SCHEMA = """\
ControllerRegistrationRequest key=70 type=request listeners=controller versions=0 flexible=0+
  ControllerId int32 0+
  IncarnationId uuid 0+
  ZkMigrationReady bool 0+
  Listeners []Listener 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
    SecurityProtocol int16 0+
  Features []Feature 0+
    Name string 0+ key
    MinSupportedVersion int16 0+
    MaxSupportedVersion int16 0+
"""
    STRUCTS = (Listener, Feature)


class ControllerRegistrationResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None

    KEY = 70
    SCHEMA = """\
ControllerRegistrationResponse key=70 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = ()
