"""Records of consumer groups compared with Apache Kafka's, and live groups passed between the two servers."""

from pathlib import Path
from typing import Any

import pytest
from tests.compat.broker.group_log import group_records, plain
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla
from tests.support.shards.consumer_harness import BenchTopics
from tests.support.sweep.consumer_groups import FOUR, JOIN, SETTINGS, TOPICS, ConsumerGroupSweep
from tests.support.sweep.consumer_stories import STORIES

from ottla.coordinator.groups.consumer.metadata_hash import TopicHashes
from ottla.wire.messages.classic_group_records import GroupMetadataValue
from ottla.wire.messages.consumer_group_records import ConsumerGroupMetadataValue

SHORTER = "static changes sides"
"""When the last member of the consumer protocol rejoins as a classic one, Apache writes the new member and then the tombstones
of the whole group, in one batch; Ottla writes only the tombstones."""
HELD = "downgrade"
"""When a downgrade begins a rebalance, Apache records the members' target assignments and Ottla their current ones: the reason
is in `ottla.coordinator.groups.consumer.migration`."""

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def run_stories(server: KafkaServer) -> ConsumerGroupSweep:
    sweep = ConsumerGroupSweep(server.bootstrap)
    sweep.run(STORIES)
    sweep.close()
    return sweep


def written(data_dir: Path, sweep: ConsumerGroupSweep) -> dict[str, Any]:
    """The log records of each story, grouped in runs of one type. Runs are sorted: Java's maps have no order."""
    names = {topic_id: name for name, topic_id in sweep.topic_ids.items()}
    stories = {}
    for group_id in sweep.group_ids:
        labels: dict[str, str] = {}
        runs: list[tuple[str, list[str]]] = []
        for key, value in group_records(data_dir, group_id):
            if isinstance(value, ConsumerGroupMetadataValue):
                value.metadata_hash = int(value.metadata_hash != 0)
            if isinstance(value, GroupMetadataValue) and group_id.startswith(HELD):
                for member in value.members:
                    member.assignment = b""
            text = sweep.labelled(repr((plain(key, names), plain(value, names))), labels)
            if not runs or runs[-1][0] != type(key).__name__:
                runs.append((type(key).__name__, []))
            runs[-1][1].append(text)
        stories[group_id] = [(kind, sorted(run)) for kind, run in runs]
    return stories


def test_the_same_stories_leave_the_same_records(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with apache_kafka.start_server(SETTINGS, data_dir=tmp_path / "apache") as apache:
        theirs = run_stories(apache)
    with start_ottla(SETTINGS, data_dir=tmp_path / "ottla") as ottla:
        ours = run_stories(ottla)
    expected, found = written(tmp_path / "apache", theirs), written(tmp_path / "ottla", ours)
    for group_id in expected:
        if not group_id.startswith(SHORTER):
            assert found[group_id] == expected[group_id], group_id

    topics = BenchTopics(1, {name: (theirs.topic_ids[name], count) for name, count in TOPICS.items()})
    assert first_hash(tmp_path / "apache", "two 1") == TopicHashes().of_group([FOUR], topics)
    assert first_hash(tmp_path / "apache", "ranges 1") == TopicHashes().of_group(TOPICS, topics)


def first_hash(data_dir: Path, group_id: str) -> int:
    values = (value for _, value in group_records(data_dir, group_id))
    return next(value.metadata_hash for value in values if isinstance(value, ConsumerGroupMetadataValue))


def test_groups_go_back_and_forth_with_their_members(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with apache_kafka.start_server(SETTINGS, data_dir=tmp_path) as apache:
        sweep = ConsumerGroupSweep(apache.bootstrap)
        sweep.run(())
        sweep.group_id, sweep.version = "moving", 1
        sweep.beat("m1", 0, {}, **JOIN)
        sweep.beat("m2", 0, {}, **JOIN)
        sweep.beat("m1", 2)
        sweep.close()
    with start_ottla(SETTINGS, data_dir=tmp_path) as ottla:
        sweep = ConsumerGroupSweep(ottla.bootstrap)
        sweep.begin()
        sweep.group_id, sweep.version, ids = "moving", 1, sweep.topic_ids
        assert sweep.beat("m2", 3).assignment is None
        assert sweep.beat("m1", 2, {FOUR: [0, 1]}).member_epoch == 3
        given = sweep.beat("m2", 3).assignment.topic_partitions
        assert [(each.topic_id, each.partitions) for each in given] == [(ids[FOUR], [2, 3])]
        sweep.close()
    with apache_kafka.start_server(SETTINGS, data_dir=tmp_path) as apache:
        sweep = ConsumerGroupSweep(apache.bootstrap)
        sweep.begin()
        sweep.group_id, sweep.version = "moving", 1
        for member_id in ("m1", "m2"):
            reply = sweep.beat(member_id, 3)
            assert (reply.error_code, reply.member_epoch, reply.assignment) == (0, 3, None)
        sweep.close()
