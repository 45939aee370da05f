"""The formats by name."""

from __future__ import annotations

import pytest

from ottla.spark.decoding.decode import ALIASES, FORMATS, decoder_for
from ottla.spark.decoding.plain import NumberDecoder
from ottla.spark.errors import SparkOptionError


def test_every_alias_is_a_format() -> None:
    assert set(ALIASES.values()) <= set(FORMATS)
    assert isinstance(decoder_for("LONG", "key", None, None, {}), NumberDecoder)


def test_an_unknown_format_is_answered_with_the_ones_there_are() -> None:
    with pytest.raises(SparkOptionError, match="key='protobuf' is no format that decode knows; there are json, avro"):
        decoder_for("protobuf", "key", None, None, {})
