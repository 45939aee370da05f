"""What a test broker logs of the requests that it refuses."""

import asyncio
import logging

import pytest
from tests.support.peers.broker_links import connected

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.testing import Broker
from ottla.testing.runner import LINES_PER_KIND, RefusalLog
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

MODES = pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])


def failures(broker: Broker) -> list[str]:
    """The refusals, in order; the rest of each line is about the request."""
    return [line.partition(" failed: ")[2] for line in broker.log_lines if " failed: " in line]


@MODES
def test_refused_reads_are_logged(process: bool) -> None:
    async def ask(broker: Broker) -> None:
        async with connected(broker) as link:
            topic = (await link.request(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]))).topics[0]
            partition = FetchPartition(partition=0, fetch_offset=7, partition_max_bytes=1000)
            entry = FetchTopic(topic="orders", topic_id=topic.topic_id, partitions=[partition])
            await link.request(FetchRequest(session_epoch=-1, max_bytes=1000, topics=[entry]))
            nowhere = MetadataRequest(topics=[MetadataRequestTopic(name="nowhere")], allow_auto_topic_creation=False)
            for _ in range(LINES_PER_KIND + 5):
                await link.request(nowhere)
            await link.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
            await link.request(HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody"))

    with Broker(process=process) as broker:
        broker.create_topic("orders")
        asyncio.run(ask(broker))
        with pytest.raises(KafkaError):
            broker.records("elsewhere")
        with pytest.raises(KafkaError):
            broker.create_topic("orders")
        broker.stop()
        (member,) = (line for line in failures(broker) if line.startswith("UNKNOWN_MEMBER_ID"))
        assert failures(broker) == [
            "OFFSET_OUT_OF_RANGE for orders-0",
            *["UNKNOWN_TOPIC_OR_PARTITION for nowhere"] * LINES_PER_KIND,
            member,
            "UNKNOWN_TOPIC_OR_PARTITION for elsewhere",
            "TOPIC_ALREADY_EXISTS for orders: topic orders exists already",
        ]


def test_a_new_member_that_gets_its_id_is_no_failure() -> None:
    async def join(broker: Broker) -> int:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(group_id="g", protocol_type="consumer", session_timeout_ms=10_000, protocols=[protocol])
        async with connected(broker) as link:
            await link.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
            response = await link.request(request)
            return int(response.error_code)

    with Broker() as broker:
        assert asyncio.run(join(broker)) == ErrorCode.MEMBER_ID_REQUIRED
        assert failures(broker) == []


def test_lines_that_differ_in_numbers_only_are_few(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    log = RefusalLog(lambda: now_s, logging.getLogger("refusals"))
    with caplog.at_level(logging.INFO, "refusals"):
        for number in range(10):
            log.report(logging.INFO, "host", "%s version %d failed: %s", "Fetch", number, "A")
        log.report(logging.INFO, "host", "%s version %d failed: %s", "Fetch", 1, "B")
        assert [record.getMessage() for record in caplog.records] == [
            *(f"Fetch version {number} failed: A" for number in range(LINES_PER_KIND)),
            "Fetch version 1 failed: B",
        ]
        now_s = 100.0
        log.report(logging.INFO, "host", "%s version %d failed: %s", "Fetch", 1, "A")
    assert [record.getMessage() for record in caplog.records][-2:] == [
        f"{10 - LINES_PER_KIND} more failed requests and closed connections were not logged, to spare the log",
        "Fetch version 1 failed: A",
    ]
