"""BrokerRegistrationRequest, BrokerRegistrationResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

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


class BrokerRegistrationRequest(Message):
    __slots__ = ("broker_id", "cluster_id", "incarnation_id", "listeners", "features", "rack", "is_migrating_zk_broker", "log_dirs", "previous_broker_epoch")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: Uuid = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[Uuid] = EMPTY,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
        self.unknown_tags = None

    KEY = 62
    SCHEMA = """\
BrokerRegistrationRequest key=62 type=request listeners=controller versions=0-4 flexible=0+
  BrokerId int32 0+ entity=brokerId
  ClusterId string 0+
  IncarnationId uuid 0+
  Listeners []Listener 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
    SecurityProtocol int16 0+
  Features []Feature 0+
    Name string 0+ key
    MinSupportedVersion int16 0+
    MaxSupportedVersion int16 0+
  Rack string 0+ nullable=0+
  IsMigratingZkBroker bool 1+ default=false
  LogDirs []uuid 2+ ignorable
  PreviousBrokerEpoch int64 3+ default=-1 ignorable
"""
    STRUCTS = (Listener, Feature)


class BrokerRegistrationResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "broker_epoch")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
        self.unknown_tags = None

    KEY = 62
    SCHEMA = """\
BrokerRegistrationResponse key=62 type=response versions=0-4 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  BrokerEpoch int64 0+ default=-1
"""
    STRUCTS = ()
