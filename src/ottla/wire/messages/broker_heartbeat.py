"""BrokerHeartbeatRequest, BrokerHeartbeatResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message


class BrokerHeartbeatRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "current_metadata_offset", "want_fence", "want_shut_down", "offline_log_dirs", "cordoned_log_dirs")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[Uuid] = EMPTY,
        cordoned_log_dirs: list[Uuid] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is EMPTY else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.unknown_tags = None

    KEY = 63
    SCHEMA = """\
BrokerHeartbeatRequest key=63 type=request listeners=controller versions=0-2 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+ default=-1
  CurrentMetadataOffset int64 0+
  WantFence bool 0+
  WantShutDown bool 0+
  OfflineLogDirs []uuid 1+ tag=0@1+
  CordonedLogDirs []uuid 2+ nullable=2+ tag=1@2+ default=null
"""
    STRUCTS = ()


class BrokerHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "is_caught_up", "is_fenced", "should_shut_down")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down
        self.unknown_tags = None

    KEY = 63
    SCHEMA = """\
BrokerHeartbeatResponse key=63 type=response versions=0-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  IsCaughtUp bool 0+ default=false
  IsFenced bool 0+ default=true
  ShouldShutDown bool 0+
"""
    STRUCTS = ()
