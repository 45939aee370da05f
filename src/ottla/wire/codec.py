"""Encodes and decodes messages: the entry points, and the cache of compiled codecs.

A codec is compiled when a message is first used in a version, and cached. `encoder` and `decoder` return the compiled
functions, for callers that keep their own table of them. Buffers are bytes or bytearrays. A memoryview works too, and is
copied once to decode its strings. `records` fields decode to views of the caller's buffer.
"""

from typing import TYPE_CHECKING, TypeVar

from ottla.errors import DecodeError
from ottla.wire.base import EncodeError, Message, Part

if TYPE_CHECKING:
    from ottla.wire.compiler.decoding import Decoder
    from ottla.wire.compiler.encoding import Encoder

M = TypeVar("M", bound=Message)

_decoders: "dict[tuple[type[Message], int], Decoder]" = {}
_encoders: "dict[tuple[type[Message], int], Encoder]" = {}


def decoder(cls: type[Message], version: int) -> "Decoder":
    """The compiled decoder: (buffer, position = 0) to (message, position after it). `UnsupportedVersion` if there is none."""
    found = _decoders.get((cls, version))
    if found is None:
        from ottla.wire.binding import binding_of  # late: importing ottla.wire must stay cheap
        from ottla.wire.compiler import compile_decoder

        found = _decoders[cls, version] = compile_decoder(binding_of(cls), version)
    return found


def encoder(cls: type[Message], version: int) -> "Encoder":
    """The compiled encoder: (message, head = b"") to a list of parts. `UnsupportedVersion` if there is none."""
    found = _encoders.get((cls, version))
    if found is None:
        from ottla.wire.binding import binding_of  # late: importing ottla.wire must stay cheap
        from ottla.wire.compiler import compile_encoder

        found = _encoders[cls, version] = compile_encoder(binding_of(cls), version)
    return found


def decode(cls: type[M], version: int, buffer: bytes | bytearray | memoryview, position: int = 0) -> tuple[M, int]:
    """The message at `position`, and the position after it. Bytes after it are ignored."""
    return decoder(cls, version)(buffer, position)


def decode_all(cls: type[M], version: int, buffer: bytes | bytearray | memoryview, position: int = 0) -> M:
    """The message that takes the whole buffer from `position`; `DecodeError` if bytes are left over."""
    message: M
    message, after = decoder(cls, version)(buffer, position)
    if after != len(buffer):
        raise DecodeError(
            f"{cls.__name__} (version {version}) ends at byte {after}, but {len(buffer) - after} more bytes follow it", after
        )
    return message


def encode(message: Message, version: int, head: bytes = b"") -> list[Part]:
    """The parts of `message`: bytes, with the values of its `records` fields between them, not copied."""
    return encoder(message.__class__, version)(message, head)


def encode_bytes(message: Message, version: int) -> bytes:
    """The message as one bytes object. Raises `EncodeError` if its records are a file range."""
    return join_parts(encoder(message.__class__, version)(message))


def join_parts(parts: list[Part]) -> bytes:
    """Parts as one bytes object; `EncodeError` where one of them is a file range."""
    for part in parts:
        if not isinstance(part, bytes | bytearray | memoryview):
            raise EncodeError("records", "a file range can only be sent or written as a part of its own, not joined to bytes")
    return b"".join(parts)  # type: ignore[arg-type]  # just checked
