"""Unknown, retired and misspelt names, and names of other libraries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.client.build import admin_settings, consumer_settings, producer_settings
from ottla.config.client.kinds import CONSUMER, KINDS, PRODUCER
from ottla.config.client.names import OTHER_LIBRARIES, RETIRED, unknown
from ottla.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("block.on.buffer.full", "use max.block.ms"),
        ("metadata.fetch.timeout.ms", "use max.block.ms"),
        ("max.in.flight.request.per.connection", "did you mean max.in.flight.requests.per.connection?"),
        ("queue.buffering.max.ms", "use linger.ms"),
        ("queue.buffering.max.messages", "use buffer.memory"),
        ("message.send.max.retries", "use retries"),
        ("request.required.acks", "use acks"),
        ("zookeeper.connect", "use bootstrap.servers"),
        ("socket.timeout.ms", "use request.timeout.ms"),
        ("debug", "logger `ottla`"),
        ("bootstrap_servers", "write bootstrap.servers; names with underscores are keywords"),
        ("Linger.MS", "write linger.ms"),
        ("producer.linger.ms", "did you mean linger.ms?"),
        ("fetch.message.max.bytes", "use max.partition.fetch.bytes, which is a setting of consumer clients"),
        ("max.poll.records", "it is a setting of consumer clients"),
        ("value.deserializer", "it is a setting of consumer clients; use value.serializer"),
        ("log.retention.hours", "it is a setting of brokers or topics"),
        ("sasl_plain_username", "as a keyword"),
        ("zzzzzz", "see docs/client-settings.md"),
    ],
)
def test_producer_names_in_the_mapping(name: str, advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        producer_settings("a:1", {name: "1"})
    assert str(refused.value).startswith(f"{name} is no producer setting of Kafka 4.3")
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("heatbeat.interval.ms", "did you mean heartbeat.interval.ms?"),
        ("fetch.message.max.bytes", "use max.partition.fetch.bytes"),
        ("autooffset.reset", "did you mean auto.offset.reset?"),
        ("auto.commit.enable", "use enable.auto.commit"),
        ("enable.auto.offset.store", "enable.auto.commit=false"),
        ("acks", "it is a setting of producer clients"),
        ("retries", "it is a setting of producer and admin clients"),
        ("bootstrap.controllers", "it is a setting of admin clients"),
    ],
)
def test_consumer_names_in_the_mapping(name: str, advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        consumer_settings("a:1", {name: "1"})
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("keyword", "advice"),
    [
        ("heatbeat_interval_ms", "did you mean heartbeat_interval_ms?"),
        ("api_version", "versions are negotiated"),
        ("ssl_cafile", "use ssl_truststore_location with ssl_truststore_type=PEM"),
        ("sasl_oauth_token_provider", "sasl_oauth_token"),
        ("fetch_message_max_bytes", "use max_partition_fetch_bytes"),
        ("loop", "drop it"),
    ],
)
def test_advice_on_keywords_is_spelt_as_keywords(keyword: str, advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        consumer_settings("a:1", None, {keyword: 1})
    assert str(refused.value).startswith(f"{keyword} is no consumer setting")
    assert advice in str(refused.value)


def test_admin_names() -> None:
    with pytest.raises(ConfigError, match="it is a setting of consumer clients"):
        admin_settings("a:1", {"group.id": "g"})


def test_a_name_that_is_no_text() -> None:
    with pytest.raises(ConfigError, match="5 is no name of a setting"):
        producer_settings("a:1", {5: "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize("table", [RETIRED, OTHER_LIBRARIES], ids=["retired", "other libraries"])
def test_advice_names_settings_that_exist(table: dict[str, str]) -> None:
    names = {name for kind in KINDS for name in kind.table}
    for old, advice in table.items():
        assert old not in names, old
        if advice.startswith("use "):
            word = advice.split(" ")[1].rstrip(",;:")
            assert word in names or word == "a" or word.startswith("Python"), old


@given(st.sampled_from([*PRODUCER.table]), st.data())
def test_a_name_with_one_letter_missing_is_recognised(name: str, data: st.DataObject) -> None:
    if len(name) < 12:
        return
    dropped = data.draw(st.integers(0, len(name) - 1))
    misspelt = name[:dropped] + name[dropped + 1 :]
    message = str(unknown(PRODUCER, misspelt, is_keyword=False))
    assert misspelt in PRODUCER.table or misspelt in RETIRED or misspelt in OTHER_LIBRARIES or "did you mean" in message


@given(st.text(max_size=40), st.booleans())
def test_any_unknown_name_gets_an_error(name: str, is_keyword: bool) -> None:
    assert "is no consumer setting" in str(unknown(CONSUMER, name, is_keyword=is_keyword))
