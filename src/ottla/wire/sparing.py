"""Encodes and decodes rare messages with the interpreter, and compiles a codec only when there are many.

Compiling a codec takes as long as interpreting forty messages of its kind (docs/decisions/0002-messages-and-kernels.md). So the
first `INTERPRETED_USES` of each class and version, such as the records of a start, are interpreted. Both give the same bytes
and messages; a parity test compares them.
"""

from typing import TYPE_CHECKING, TypeVar, cast

from ottla.errors import DecodeError
from ottla.wire import interpreter
from ottla.wire.base import Message, Part
from ottla.wire.binding import binding_of
from ottla.wire.codec import decoder, encoder

if TYPE_CHECKING:
    from ottla.wire.compiler.decoding import Decoder
    from ottla.wire.compiler.encoding import Encoder

M = TypeVar("M", bound=Message)

INTERPRETED_USES = 32

_encoded: dict[tuple[type[Message], int], int] = {}
_decoded: dict[tuple[type[Message], int], int] = {}


def encode(message: Message, version: int, head: bytes = b"") -> list[Part]:
    """Like `codec.encode`, but interpreted until there have been many."""
    encode_now = encoder_if_many(message.__class__, version)
    if encode_now is None:
        return interpreter.encode(binding_of(message.__class__), version, message, head)
    return encode_now(message, head)


def decode_all(cls: type[M], version: int, buffer: bytes | bytearray | memoryview, position: int = 0) -> M:
    """Like `codec.decode_all`, but interpreted until there have been many."""
    decode_now = decoder_if_many(cls, version)
    if decode_now is None:
        message, after = interpreter.decode(binding_of(cls), version, buffer, position)
    else:
        message, after = decode_now(buffer, position)
    if after != len(buffer):
        raise DecodeError(
            f"{cls.__name__} (version {version}) ends at byte {after}, but {len(buffer) - after} more bytes follow it", after
        )
    return cast("M", message)


def encoder_if_many(cls: type[Message], version: int) -> "Encoder | None":
    """Count one more use. Returns the compiled encoder after `INTERPRETED_USES`, else None."""
    count = _encoded[cls, version] = _encoded.get((cls, version), 0) + 1
    return encoder(cls, version) if count > INTERPRETED_USES else None


def decoder_if_many(cls: type[Message], version: int) -> "Decoder | None":
    """Count one more use. Returns the compiled decoder after `INTERPRETED_USES`, else None."""
    count = _decoded[cls, version] = _decoded.get((cls, version), 0) + 1
    return decoder(cls, version) if count > INTERPRETED_USES else None
