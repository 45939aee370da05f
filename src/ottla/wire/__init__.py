"""Kafka's wire protocol without IO: the schema table, the codec compiler, primitives, headers and framing.

    from ottla.wire import decode, encode
    from ottla.wire.messages.metadata import MetadataRequest

    parts = encode(MetadataRequest(topics=None), version=12)
    request, end = decode(MetadataRequest, 12, buffer)

Message classes live in `ottla.wire.messages`, one module per API or log. Import only the modules you need.
"""

from ottla.wire.base import Bytes, EncodeError, Message, Part, Records, Struct, UnsupportedVersion
from ottla.wire.codec import decode, decode_all, decoder, encode, encode_bytes, encoder, join_parts

__all__ = [
    "Bytes",
    "EncodeError",
    "Message",
    "Part",
    "Records",
    "Struct",
    "UnsupportedVersion",
    "decode",
    "decode_all",
    "decoder",
    "encode",
    "encode_bytes",
    "encoder",
    "join_parts",
]
