"""__consumer_offsets passed between Ottla and Apache Kafka: each continues with the groups and offsets that the other wrote."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.group_requests import GroupRequests, until
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla
from tests.support.sweep.story import Story

from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUPS = ("plain", "timed", "with members", "done", "undone", "open", "to be deleted")

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def commit_in_transaction(story: Story, group_id: str, offset: int) -> None:
    """Begin a transaction of `x-group` and let it commit an offset."""
    story.begin_transaction(f"x-{group_id}", group_id)
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=f"x-{group_id}",
        group_id=group_id,
        producer_id=story.producer_id,
        producer_epoch=story.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="sweep", partitions=[part])],
    )
    assert story.ask(request, 3).topics[0].partitions[0].error_code == 0


def live(server: KafkaServer, base: int) -> None:
    """Groups commit offsets, also in transactions, and one is deleted. The offsets depend on `base`."""
    story = Story(server.bootstrap)
    story.await_coordinators()
    with GroupRequests(server.bootstrap) as groups:
        assert groups.commit("plain", {("sweep", 0): base, ("sweep", 1): base + 1}, metadata="x" * 100) == [0, 0]
        assert groups.commit("to be deleted", {("sweep", 0): base}) == [0]
    part = OffsetCommitRequestPartition(partition_index=1, committed_offset=base + 2)
    topic = OffsetCommitRequestTopic(name="sweep", partitions=[part])
    timed = OffsetCommitRequest(group_id="timed", retention_time_ms=10**9, topics=[topic])
    assert story.ask(timed, 3).topics[0].partitions[0].error_code == 0
    story.join("with members")
    member = OffsetCommitRequest(
        group_id="with members",
        member_id=story.member_id,
        generation_id_or_member_epoch=story.generation,
        topics=[topic],
    )
    assert story.ask(member, 9).topics[0].partitions[0].error_code == 0
    story.leave("with members")
    for group_id, is_commit in (("done", True), ("undone", False)):
        commit_in_transaction(story, group_id, base + 3)
        story.end_transaction(f"x-{group_id}", is_commit, 3, group_id)
    with GroupRequests(server.bootstrap) as groups:
        assert groups.delete("to be deleted") == [0]


def seen(server: KafkaServer) -> dict[str, Any]:
    with GroupRequests(server.bootstrap) as groups:
        stable = groups.fetch(*GROUPS, require_stable=True)
        return {"stable": stable, "offsets": groups.fetch(*GROUPS), "groups": groups.listed()}


def expected(base: int, opened: int | None, is_open: bool = False) -> dict[str, Any]:
    """The offsets after `live`. `opened` is what a transaction of the group `open` has committed; another may be open."""
    offsets: dict[str, dict[tuple[str, int], int]] = {
        "plain": {("sweep", 0): base, ("sweep", 1): base + 1},
        "timed": {("sweep", 1): base + 2},
        "with members": {("sweep", 1): base + 2},
        "done": {("sweep", 0): base + 3},
        "undone": {},
        "open": {} if opened is None else {("sweep", 0): opened},
        "to be deleted": {},
    }
    listed = sorted(name for name in GROUPS if name != "to be deleted")
    unstable = {("sweep", 0): -1} if is_open and opened is not None else offsets["open"]
    return {"stable": offsets | {"open": unstable}, "offsets": offsets, "groups": listed}


def dumped(kafka: ApacheKafka, data: Path) -> str:
    segments = sorted(data.glob("__consumer_offsets-0/*.log"))
    files = ",".join(map(str, segments))
    return kafka.run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", files, "--offsets-decoder").stdout


def test_offsets_go_back_and_forth(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with start_ottla(data_dir=tmp_path) as ottla:
        make_topic(ottla.bootstrap, "sweep", 2)
        live(ottla, 1000)
        story = Story(ottla.bootstrap)
        commit_in_transaction(story, "open", 77)
        assert seen(ottla) == expected(1000, None)
    text = dumped(apache_kafka, tmp_path)
    assert re.search(r'"group":"plain".*"offset":1000.*"topicId":"(?!A{22})', text), text
    assert "unparseable" not in text.lower()

    with apache_kafka.start_server(data_dir=tmp_path) as apache:
        assert seen(apache) == expected(1000, None)
        theirs = Story(apache.bootstrap)
        theirs.await_coordinators()
        theirs.producer_id, theirs.producer_epoch = story.producer_id, story.producer_epoch
        theirs.end_transaction("x-open", True, 3, "open")
        assert seen(apache) == expected(1000, 77)
        live(apache, 2000)
        commit_in_transaction(theirs, "open", 88)
        assert seen(apache) == expected(2000, 77, is_open=True)

    with start_ottla(data_dir=tmp_path) as ottla:
        assert seen(ottla) == expected(2000, 77, is_open=True)
        ours = Story(ottla.bootstrap)
        ours.await_coordinators()
        ours.producer_id, ours.producer_epoch = theirs.producer_id, theirs.producer_epoch
        ours.end_transaction("x-open", True, 3, "open")
        until(lambda: seen(ottla) == expected(2000, 88), "the offset of the transaction")
