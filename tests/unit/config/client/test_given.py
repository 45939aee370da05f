"""What a client was given: values as people write them, and the same setting twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.client.given import collect, parse
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER
from ottla.config.values import InvalidConfig


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("linger.ms", "5", 5),
        ("linger.ms", 5, 5),
        ("linger.ms", " 250ms ", 250),
        ("delivery.timeout.ms", "1h30m", 5_400_000),
        ("enable.idempotence", "TRUE", True),
        ("enable.idempotence", False, False),
        ("acks", "all", -1),
        ("acks", -1, -1),
        ("acks", 1, 1),
        ("sasl.login.refresh.window.factor", 0.9, 0.9),
        ("sasl.login.refresh.window.factor", 1, 1.0),
        ("security.protocol", "sasl_ssl", "SASL_SSL"),
        ("metadata.recovery.strategy", "NONE", "none"),
        ("client.id", 7, "7"),
        ("ssl.cipher.suites", ["a", "b"], ("a", "b")),
        ("ssl.cipher.suites", "a, b", ("a", "b")),
        ("bootstrap.servers", " a:1, b ,", (("a", 1), ("b", 9092))),
        ("bootstrap.servers", [("a", 1), "[::1]:2"], (("a", 1), ("::1", 2))),
        ("key.serializer", "str", "str"),
    ],
)
def test_values_as_people_write_them(name: str, value: Any, parsed: Any) -> None:
    found = parse(PRODUCER.table[name], value)
    assert found == parsed
    assert type(found) is type(parsed)


def test_assignors_are_a_text_a_list_or_one_object() -> None:
    key = CONSUMER.table["partition.assignment.strategy"]
    own = object()
    assert parse(key, "range, sticky,range") == ("range", "sticky")
    assert parse(key, ["cooperative-sticky", own]) == ("cooperative-sticky", own)
    assert parse(key, own) == (own,)
    with pytest.raises(InvalidConfig, match="is empty: name at least one of range"):
        parse(key, "")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("linger.ms", True, "linger.ms=True: must be a whole number, not bool"),
        ("linger.ms", 0.5, "must be a whole number of milliseconds"),
        ("linger.ms", "soon", "must be a whole number"),
        ("linger.ms", [5], "must be a whole number, not list"),
        ("linger.ms", -1, "must be at least 0"),
        ("batch.size", "64 MB", "must be a whole number"),
        ("batch.size", 1 << 31, "at most 32 bits"),
        (
            "acks",
            2,
            "acks=2: must be one of all, -1, 0, 1. It is no number of replicas: `all` .or -1. is probably what you mean",
        ),
        ("acks", "3", "acks=3: must be one of all, -1, 0, 1. It is no number"),
        ("acks", "two", "must be one of all"),
        ("enable.idempotence", 1, "must be True or False, not int"),
        ("enable.idempotence", "yes", "must be true or false"),
        ("compression.type", "brotli", "must be one of none, gzip"),
        ("bootstrap.servers", "a:b", "bootstrap.servers: a:b is not HOST:PORT"),
        ("bootstrap.servers", 9092, "write host:port"),
        ("ssl.cipher.suites", [5], "must be a list of texts"),
        ("client.id", b"x", "must be a text, not bytes"),
        ("transactional.id", "", "must not be empty"),
    ],
)
def test_values_that_cannot_be(name: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidConfig, match=problem) as refused:
        parse(PRODUCER.table[name], value)
    assert refused.value.name == name


def test_a_password_of_a_wrong_type_is_not_shown() -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse(PRODUCER.table["ssl.key.password"], b"s3cret")
    assert "s3cret" not in str(refused.value)


def test_none_means_not_given() -> None:
    assert collect(PRODUCER, None, {"linger.ms": None}, {"acks": None}) == {}


def test_the_same_setting_twice_must_agree() -> None:
    assert collect(PRODUCER, "a:1", {"bootstrap.servers": "a:1", "linger.ms": "1s"}, {"linger_ms": 1000})["linger.ms"] == 1000
    with pytest.raises(InvalidConfig, match=r"linger.ms is given twice.*in the mapping.*the keyword linger_ms"):
        collect(PRODUCER, "a:1", {"linger.ms": 1}, {"linger_ms": 2})
    with pytest.raises(InvalidConfig, match=r"bootstrap.servers is given twice.*the first argument"):
        collect(ADMIN, "a:1", {"bootstrap.servers": "b:1"}, {})


def test_the_short_keyword_of_the_partitioner() -> None:
    own = object()
    assert collect(PRODUCER, None, None, {"partitioner": own}) == {"partitioner.class": own}
    with pytest.raises(InvalidConfig, match=r"partitioner.class is given twice"):
        collect(PRODUCER, None, {"partitioner.class": "roundrobin"}, {"partitioner": own})


def test_two_mappings_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="give one mapping"):
        collect(PRODUCER, {"acks": "1"}, {"acks": "1"}, {})


def test_config_must_be_a_mapping() -> None:
    with pytest.raises(InvalidConfig, match="config must be a mapping of Kafka's names, not str"):
        collect(PRODUCER, None, "linger.ms=5", {})  # type: ignore[arg-type]


@given(
    st.sampled_from([*PRODUCER.table]),
    st.one_of(st.text(max_size=20), st.integers(-(2**70), 2**70), st.booleans(), st.floats(), st.lists(st.text(max_size=5))),
)
def test_any_value_is_parsed_or_refused(name: str, value: object) -> None:
    try:
        parse(PRODUCER.table[name], value)
    except InvalidConfig as error:
        refused = error
    else:
        return
    assert name in str(refused)
    assert refused.name == name
