"""The coordinators' APIs in every version: the same requests, in the same story, get the same replies as from Apache Kafka.

Like `test_versions`, with a separate server and golden file: groups and transactions need earlier requests.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer
from tests.support.sweep.consumer_cases import consumer_cases, finding_cases
from tests.support.sweep.offset_cases import OffsetCases
from tests.support.sweep.producer_cases import ProducerCases
from tests.support.sweep.story import Story
from tests.support.sweep.sweep import COORDINATED, COORDINATED_GOLDEN, ask_all, differences, read_golden, write_golden
from tests.support.sweep.transaction_cases import transaction_cases

from ottla.wire.apis import APIS


@pytest.fixture(scope="module")
def swept(start_server: StartServer) -> Iterator[KafkaServer]:
    """A server for this test alone, so that its replies depend only on the sweep."""
    with start_server({"auto.create.topics.enable": "false"}) as server:
        yield server


@pytest.fixture(scope="module")
def replies(swept: KafkaServer, server_kind: str) -> dict[str, Any]:
    story = Story(swept.bootstrap)
    offsets = OffsetCases(make_topic(swept.bootstrap, "sweep", 2), story)
    found = ask_all(swept, offsets.early())
    story.await_coordinators()
    found |= ask_all(swept, finding_cases())
    found |= ask_all(swept, offsets.simple())
    story.join("members")
    found |= ask_all(swept, offsets.with_members())
    found |= ask_all(swept, consumer_cases(offsets))
    found |= ask_all(swept, transaction_cases(offsets, story))
    found |= ask_all(swept, ProducerCases(story).all())
    if server_kind == "apache" and os.environ.get("OTTLA_WRITE_GOLDEN"):
        write_golden(found, COORDINATED_GOLDEN)
    return found


@pytest.mark.parametrize("api_key", sorted(COORDINATED), ids=lambda key: APIS[key].name)
def test_replies_are_as_recorded(api_key: int, replies: dict[str, Any]) -> None:
    golden = read_golden(COORDINATED_GOLDEN)
    assert list(golden) == list(replies), "the sweep has changed: write the golden file again"
    mine = {name: reply for name, reply in replies.items() if name.startswith(f"{APIS[api_key].name}: ")}
    assert mine, "every API is in the sweep"
    wrong = [f"{name}{line}" for name, reply in mine.items() for line in differences(reply, golden[name])]
    assert not wrong, "\n".join(wrong)
