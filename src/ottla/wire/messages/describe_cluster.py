"""DescribeClusterRequest, DescribeClusterResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self.unknown_tags = None

    KEY = 60
    SCHEMA = """\
DescribeClusterRequest key=60 type=request listeners=broker,controller versions=0-2 flexible=0+
  IncludeClusterAuthorizedOperations bool 0+
  EndpointType int8 1+ default=1
  IncludeFencedBrokers bool 2+
"""
    STRUCTS = ()


class DescribeClusterBroker(Struct):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced
        self.unknown_tags = None


class DescribeClusterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.unknown_tags = None

    KEY = 60
    SCHEMA = """\
DescribeClusterResponse key=60 type=response versions=0-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  EndpointType int8 1+ default=1
  ClusterId string 0+
  ControllerId int32 0+ default=-1 entity=brokerId
  Brokers []DescribeClusterBroker 0+
    BrokerId int32 0+ key entity=brokerId
    Host string 0+
    Port int32 0+
    Rack string 0+ nullable=0+ default=null
    IsFenced bool 2+
  ClusterAuthorizedOperations int32 0+ default=-2147483648
"""
    STRUCTS = (DescribeClusterBroker,)
