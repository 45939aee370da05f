"""EnvelopeRequest, EnvelopeResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Bytes, Message


class EnvelopeRequest(Message):
    __slots__ = ("request_data", "request_principal", "client_host_address")

    def __init__(
        self,
        *,
        request_data: Bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self.unknown_tags = None

    KEY = 58
    SCHEMA = """\
EnvelopeRequest key=58 type=request listeners=controller versions=0 flexible=0+
  RequestData bytes 0+ zerocopy
  RequestPrincipal bytes 0+ nullable=0+
  ClientHostAddress bytes 0+
"""
    STRUCTS = ()


class EnvelopeResponse(Message):
    __slots__ = ("response_data", "error_code")

    def __init__(
        self,
        *,
        response_data: Bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.unknown_tags = None

    KEY = 58
    SCHEMA = """\
EnvelopeResponse key=58 type=response versions=0 flexible=0+
  ResponseData bytes 0+ nullable=0+ default=null zerocopy
  ErrorCode int16 0+
"""
    STRUCTS = ()
