"""A consumer's settings and deserializers."""

import pytest

from ottla.client.consumer.options import consumer_options
from ottla.errors import OttlaError


def test_deserializers_are_made_and_bytes_need_none() -> None:
    options = consumer_options("h:1", None, {"value_deserializer": "json"})
    key, value = options.deserializers
    assert key is None
    assert value is not None
    assert value("t", (), b'{"a": 1}') == {"a": 1}


def test_kafkas_names_are_taken_too() -> None:
    config = {
        "bootstrap.servers": "h:1",
        "group.id": "g",
        "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    }
    options = consumer_options(None, config, {})
    assert options.settings.group_id == "g"
    assert options.deserializers[1] is not None


def test_a_python_path_names_a_deserializer() -> None:
    options = consumer_options("h:1", None, {"value_deserializer": "json:loads"})
    assert options.deserializers[1] is not None
    assert options.deserializers[1]("t", (), b"[1]") == [1]


def test_mistakes_are_told_when_the_consumer_is_made() -> None:
    with pytest.raises(OttlaError, match="heartbeat"):
        consumer_options("h:1", None, {"heatbeat_interval_ms": 5})
