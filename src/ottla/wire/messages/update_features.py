"""UpdateFeaturesRequest, UpdateFeaturesResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class FeatureUpdateKey(Struct):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type
        self.unknown_tags = None


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only")

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY else feature_updates
        self.validate_only = validate_only
        self.unknown_tags = None

    KEY = 57
    SCHEMA = """\
UpdateFeaturesRequest key=57 type=request listeners=broker,controller versions=0-2 flexible=0+
  timeoutMs int32 0+ default=60000
  FeatureUpdates []FeatureUpdateKey 0+
    Feature string 0+ key
    MaxVersionLevel int16 0+
    AllowDowngrade bool 0
    UpgradeType int8 1+ default=1
  ValidateOnly bool 1+ default=false
"""
    STRUCTS = (FeatureUpdateKey,)


class UpdatableFeatureResult(Struct):
    __slots__ = ("feature", "error_code", "error_message")

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class UpdateFeaturesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 57
    SCHEMA = """\
UpdateFeaturesResponse key=57 type=response versions=0-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Results []UpdatableFeatureResult 0-1 ignorable
    Feature string 0+ key
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = (UpdatableFeatureResult,)
