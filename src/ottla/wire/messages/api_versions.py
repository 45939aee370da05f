"""ApiVersionsRequest, ApiVersionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version")

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.unknown_tags = None

    KEY = 18
    SCHEMA = """\
ApiVersionsRequest key=18 type=request listeners=broker,controller versions=0-4 flexible=3+
  ClientSoftwareName string 3+ ignorable
  ClientSoftwareVersion string 3+ ignorable
"""
    STRUCTS = ()


class FinalizedFeatureKey(Struct):
    __slots__ = ("name", "max_version_level", "min_version_level")

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level
        self.unknown_tags = None


class SupportedFeatureKey(Struct):
    __slots__ = ("name", "min_version", "max_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = None


class ApiVersion(Struct):
    __slots__ = ("api_key", "min_version", "max_version")

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = None


class ApiVersionsResponse(Message):
    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready")

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready
        self.unknown_tags = None

    KEY = 18
    SCHEMA = """\
ApiVersionsResponse key=18 type=response versions=0-4 flexible=3+
  ErrorCode int16 0+
  ApiKeys []ApiVersion 0+
    ApiKey int16 0+ key
    MinVersion int16 0+
    MaxVersion int16 0+
  ThrottleTimeMs int32 1+ ignorable
  SupportedFeatures []SupportedFeatureKey 3+ tag=0@3+ ignorable
    Name string 3+ key
    MinVersion int16 3+
    MaxVersion int16 3+
  FinalizedFeaturesEpoch int64 3+ tag=1@3+ default=-1 ignorable
  FinalizedFeatures []FinalizedFeatureKey 3+ tag=2@3+ ignorable
    Name string 3+ key
    MaxVersionLevel int16 3+
    MinVersionLevel int16 3+
  ZkMigrationReady bool 3+ tag=3@3+ default=false ignorable
"""
    STRUCTS = (ApiVersion, SupportedFeatureKey, FinalizedFeatureKey)
