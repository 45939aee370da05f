"""Requests and responses whole: header and body, framed.

A request's header is version 2 where the request's version is flexible, else 1 (ControlledShutdown 0 had version 0, which
lacks the client id); in all of them the client id keeps the old encoding. A response's header is version 1 where flexible, else
0; ApiVersions responses always have 0, since a client reads one before it knows what the broker speaks.

    request   int16 api key | int16 version | int32 correlation id | nullable string client id | tagged fields (version 2)
    response  int32 correlation id | tagged fields (version 1)
"""

from struct import Struct, error
from typing import TYPE_CHECKING, Any, Final

from ottla.errors import DecodeError
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS
from ottla.wire.base import EncodeError, Message, Part
from ottla.wire.codec import decoder, encoder
from ottla.wire.messages.headers import RequestHeader
from ottla.wire.varint import decode_uvarint

if TYPE_CHECKING:
    from ottla.wire.compiler.decoding import Decoder
    from ottla.wire.compiler.encoding import Encoder

FRAME_BYTES_MAX: Final = 0x7FFFFFFF
HEADER_TAGS_MAX: Final = 1000
"""Kafka has defined none so far. A large frame has room for millions, and they are read one by one."""

_REQUEST: Final = Struct(">hhih")
_KEY_AND_VERSION: Final = Struct(">hh")
_LENGTH: Final = Struct(">h")
_CORRELATION_ID: Final = Struct(">i")
_SIZE: Final = Struct(">i")

_new: Final = object.__new__
_FLEXIBLE_FROM: Final = {
    api.key: api.flexible_from if api.flexible_from >= 0 else 1 << 16
    for api in APIS.values()
    if api.key != ApiKey.CONTROLLED_SHUTDOWN
}

_request_decoders: "dict[tuple[int, int], Decoder]" = {}
_response_encoders: "dict[tuple[type[Message], int], tuple[Encoder, bool]]" = {}


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the header in front of a request; also for versions this node does not know."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    api = APIS.get(api_key)
    if api is None:
        raise DecodeError(f"there is no API with the key {api_key}: the peer speaks a newer protocol or none of Kafka's")
    return 2 if api.is_flexible(api_version) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the header in front of a response."""
    return 1 if api_key != ApiKey.API_VERSIONS and APIS[api_key].is_flexible(api_version) else 0


def read_request_header(frame: bytes | bytearray, position: int = 0) -> tuple[RequestHeader, int]:
    """The header of the request in `frame`, and where its body begins. An unknown API key is a `DecodeError`."""
    try:
        header = _new(RequestHeader)
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(frame, position)
        header.request_api_key, header.request_api_version, header.correlation_id = api_key, api_version, correlation_id
        header.unknown_tags = None
        body = position + 10
        if length >= 0:
            header.client_id = frame[body : body + length].decode()
            body += length
        else:
            header.client_id = None
        if api_version >= _FLEXIBLE_FROM[api_key]:
            if frame[body]:
                return _read_header_stepwise(frame, position)
            body += 1
        if body <= len(frame):
            return header, body
    except (error, IndexError, KeyError, UnicodeDecodeError):
        pass
    return _read_header_stepwise(frame, position)


def _read_header_stepwise(frame: bytes | bytearray, position: int) -> tuple[RequestHeader, int]:
    """The same, step by step: for headers with tagged fields or an odd client id, and to say what is wrong with others."""
    header = RequestHeader()
    try:
        header.request_api_key, header.request_api_version = _KEY_AND_VERSION.unpack_from(frame, position)
        header_version = request_header_version(header.request_api_key, header.request_api_version)
        (header.correlation_id,) = _CORRELATION_ID.unpack_from(frame, position + 4)
        if header_version == 0:
            return header, position + 8
        (length,) = _LENGTH.unpack_from(frame, position + 8)
    except error:
        raise DecodeError(f"the frame of {len(frame) - position} bytes is too short for a request header", position) from None
    position += 10
    header.client_id = None
    if length >= 0:
        if length > len(frame) - position:
            raise DecodeError(f"RequestHeader.client_id: {length} bytes are announced, more than the frame has", position)
        header.client_id = str(frame[position : position + length], "utf-8", "replace")
        position += length
    if header_version == 2:
        header.unknown_tags, position = _read_tags(frame, position)
    return header, position


def _read_tags(frame: bytes | bytearray, position: int) -> tuple[list[tuple[int, bytes]] | None, int]:
    """A header's tagged fields, none of which is known, and where they end."""
    count, position = decode_uvarint(frame, position)
    if count > HEADER_TAGS_MAX:
        raise DecodeError(f"the header announces {count} tagged fields, where {HEADER_TAGS_MAX} are allowed", position)
    tags = []
    for _ in range(count):
        tag, position = decode_uvarint(frame, position)
        size, position = decode_uvarint(frame, position)
        if size > len(frame) - position:
            raise DecodeError(f"the header's tagged field {tag} announces {size} bytes, more than the frame has", position)
        tags.append((tag, bytes(frame[position : position + size])))
        position += size
    return tags or None, position


def parse_request(frame: bytes | bytearray) -> tuple[RequestHeader, Any]:
    """The header and body of the request that fills `frame`. Bytes after the body are ignored, as Kafka ignores them.

    `DecodeError` for bytes that are no request, `UnsupportedVersion` for a version the API does not have: both close the
    connection. ApiVersions is the exception: a version this node does not know gives an empty `ApiVersionsRequest`, to be
    answered in version 0 with UNSUPPORTED_VERSION, which `header.request_api_version` lets the handler see.
    """
    header, position = read_request_header(frame)
    key = header.request_api_key, header.request_api_version
    decode = _request_decoders.get(key)
    if decode is None:
        api = APIS[key[0]]
        if key[0] == ApiKey.API_VERSIONS and not api.has_version(key[1]):
            return header, api.request_class()
        if api.is_removed:
            raise DecodeError(f"the API {api.name} was removed from the protocol", 0)
        decode = _request_decoders[key] = decoder(api.request_class, key[1])
    return header, decode(frame, position)[0]


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
    """The whole frame of a request."""
    api_key = message.KEY
    raw = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(raw)
    try:
        head = _REQUEST.pack(api_key, version, correlation_id, length) + raw
    except error:
        raise EncodeError(
            "RequestHeader", f"correlation id {correlation_id} or client id of {length} bytes is too large"
        ) from None
    if APIS[api_key].is_flexible(version):
        head += b"\0"
    return _framed(encoder(message.__class__, version)(message, head))


def encode_response(message: Message, version: int, correlation_id: int) -> list[Part]:
    """The whole frame of a response; its size counts the file ranges in it."""
    key = message.__class__, version
    found = _response_encoders.get(key)
    if found is None:
        found = _response_encoders[key] = (encoder(*key), response_header_version(message.KEY, version) == 1)
    encode, has_tags = found
    head = _CORRELATION_ID.pack(correlation_id)
    return _framed(encode(message, head + b"\0" if has_tags else head))


def _framed(parts: list[Part]) -> list[Part]:
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    if size > FRAME_BYTES_MAX:
        raise EncodeError("frame", f"its {size} bytes are more than the {FRAME_BYTES_MAX} that a frame can have")
    parts[0] = _SIZE.pack(size) + parts[0]  # type: ignore[operator]  # the first part holds the header: bytes
    return parts


def read_response_header(frame: bytes | bytearray, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id of the response in `frame`, to a request of this API and version, and where its body begins."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 0)
    except error:
        raise DecodeError(f"the frame of {len(frame)} bytes is too short for a response header", 0) from None
    return correlation_id, _read_tags(frame, 4)[1] if response_header_version(api_key, version) == 1 else 4
