"""`ottla registry` in front of Apache Kafka: the same API, and the same fence between registries."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cases.registry_load import RegistryLoad, check_answers
from tests.support.cases.registry_requests import STORIES, asked, mismatch, named
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.ottla_cli import run_cli

from ottla.config.client import admin_settings
from ottla.registry.records import TOPIC
from ottla.registry.server import RegistryThread
from ottla.schemas import AvroDeserializer, AvroSerializer, SchemaRegistry

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def apache(apache_kafka: ApacheKafka) -> Iterator[str]:
    with apache_kafka.start_server() as server:
        yield server.bootstrap


@pytest.fixture(scope="module")
def urls(apache: str) -> Iterator[list[str]]:
    threads = [RegistryThread(admin_settings(apache, config={}, keywords={})) for _ in range(2)]
    for each in threads:
        each.start()
    yield [each.url for each in threads]
    for each in threads:
        each.close()


def test_every_story_is_told_by_two_registries_in_turn(urls: list[str]) -> None:
    """A write by one of them is decided on what the other has written; a read may be a moment behind, so one story is one's."""
    for number, story in enumerate(STORIES):
        subject = f"t-{story.name}"
        kept: dict[str, Any] = {}
        for step in story.steps:
            status, answer, _ = asked(urls[number % 2], step, subject, kept)
            assert status == step.status, (story.name, step)
            assert not mismatch(named(step.answer, subject), answer, kept), (story.name, step)
            if step.keep:
                kept[step.keep] = answer


def test_two_registries_share_no_id(urls: list[str]) -> None:
    SchemaRegistry(urls[0]).call("PUT", "/config", {"compatibility": "NONE"})
    load = RegistryLoad(urls)
    load.grow(80)
    load.stop()
    assert not load.refusals
    check_answers(urls, load.answers)


def test_records_and_topic_are_plain(urls: list[str], apache: str) -> None:
    serializer = AvroSerializer(urls[0], '"string"')
    assert AvroDeserializer(urls[1]).deserialize("t", [], serializer.serialize("t", [], "text")) == "text"
    said = run_cli("configs", "describe", "--topic", TOPIC, "-b", apache)
    assert "cleanup.policy=compact" in said.out.replace(" ", "")
