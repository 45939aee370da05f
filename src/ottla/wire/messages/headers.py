"""RequestHeader, ResponseHeader. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class RequestHeader(Message):
    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tags = None

    SCHEMA = """\
RequestHeader type=header versions=1-2 flexible=2+
  RequestApiKey int16 0+
  RequestApiVersion int16 0+
  CorrelationId int32 0+
  ClientId string 1+ nullable=1+ flexible=none
"""
    STRUCTS = ()


class ResponseHeader(Message):
    __slots__ = ("correlation_id",)

    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.unknown_tags = None

    SCHEMA = """\
ResponseHeader type=header versions=0-1 flexible=1+
  CorrelationId int32 0+
"""
    STRUCTS = ()
