"""What the fast check declines, with which reason, and that validation goes on from there to the same outcome."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.unit.records.test_kernel_batch import NOW, batches, checked, configs, versions

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.decline import Decline
from ottla.records.kernels import Record
from ottla.records.layout import CRC_AT
from ottla.records.produced import validate


def outcome(batch: bytearray, config: LogConfig, from_client: bool, version: int, decline: Decline) -> Any:
    data = bytearray(batch)
    try:
        valid = validate.validate_produced(
            data, config, now_ms=NOW, partition="t-0", from_client=from_client, request_version=version, decline=decline
        )
    except KafkaError as error:
        return error.code, str(error), error.record_errors, bytes(data)
    return bytes(valid.data), valid.max_timestamp, valid.append_time_ms, repr(valid.view)


@settings(max_examples=examples(600), deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans(), version=versions)
def test_validation_gives_the_same_after_a_decline_as_from_the_start(
    variant: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int
) -> None:
    decline, _ = checked(variant, batch, config, from_client, version)
    known = Decline.LOG if decline is Decline.NO else decline
    assert outcome(batch, config, from_client, version, known) == outcome(batch, config, from_client, version, Decline.HEADER)


@pytest.mark.parametrize(
    ("config", "codec", "is_damaged", "expected"),
    [
        (LogConfig(), Codec.NONE, True, Decline.CRC),
        (LogConfig(), Codec.GZIP, True, Decline.CRC),
        (LogConfig(cleanup_policy=("compact",)), Codec.NONE, False, Decline.RECORDS),
        (LogConfig(cleanup_policy=("compact",)), Codec.GZIP, False, Decline.HEADER),
        (LogConfig(compression_type="gzip"), Codec.NONE, False, Decline.HEADER),
        (LogConfig(max_message_bytes=61), Codec.NONE, False, Decline.HEADER),
    ],
)
def test_a_decline_says_what_was_checked(
    variant: Any, config: LogConfig, codec: Codec, is_damaged: bool, expected: Decline
) -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())], codec=codec)
    batch[CRC_AT] ^= is_damaged
    assert checked(variant, batch, config, True, 13)[0] is expected
