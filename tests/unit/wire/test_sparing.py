"""Rare messages are interpreted, frequent ones compiled, and both give the same result."""

import pytest

from ottla.errors import DecodeError
from ottla.wire import codec, sparing
from ottla.wire.messages.metadata_records import TopicRecord


def test_the_same_bytes_and_messages_before_and_after_compiling() -> None:
    version = 0
    plain = codec.encode_bytes(TopicRecord(name="t", topic_id=b"i" * 16), version)
    for _ in range(2 * sparing.INTERPRETED_USES + 2):
        message = TopicRecord(name="t", topic_id=b"i" * 16)
        assert sparing.encode(message, version, b"head") == [b"head" + plain]
        assert sparing.decode_all(TopicRecord, version, b"head" + plain, 4) == message
        with pytest.raises(DecodeError, match="1 more bytes follow"):
            sparing.decode_all(TopicRecord, version, plain + b"!")


def test_a_codec_is_compiled_after_enough_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparing, "_encoded", {})
    monkeypatch.setattr(sparing, "_decoded", {})
    for _ in range(sparing.INTERPRETED_USES):
        assert sparing.encoder_if_many(TopicRecord, 0) is None
        assert sparing.decoder_if_many(TopicRecord, 0) is None
    assert sparing.encoder_if_many(TopicRecord, 0) is codec.encoder(TopicRecord, 0)
    assert sparing.decoder_if_many(TopicRecord, 0) is codec.decoder(TopicRecord, 0)
