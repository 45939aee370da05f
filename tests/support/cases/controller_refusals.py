"""Requests that the controller refuses, with Apache Kafka 4.3.0's error codes.

`CASES` is one script, run in order against a cluster with broker 1 only, with default settings and the topics of `PREPARED`.
Some requests succeed and change what later ones find. The codes in `tests/golden/controller_refusals.json` are those of a real
broker: one test compares them with Apache Kafka, another compares our decisions with them.

One refusal is missing: if a topic is to grow by too many partitions at once, Apache's controller answers "unknown server
error", but writes the first ten thousand. Ours refuses the whole request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.wire.base import Message
from ottla.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

PREPARED = {"exists": 2, "dotted.name": 1, "victim": 1, "by-both": 1, "growing": 1}
"""Topic → partitions, created before the script runs."""

Codes = dict[str, int]
Ids = dict[str, Uuid]
"""Topic → its id on the node under test."""
CODES: dict[str, Codes] = json.loads((Path(__file__).parents[2] / "golden" / "controller_refusals.json").read_text())
"""Case → the error codes of the response, by topic, partition or feature."""
NOWHERE = Uuid(b"no such topic id")


@dataclass(frozen=True)
class Case:
    """A request in a version; `make` gets the ids of the prepared topics."""

    name: str
    version: int
    make: Callable[[Ids], Message]


def topic(name: str, partitions: int = 1, replicas: int = 1, *, assign: Any = (), **configs: str | None) -> CreatableTopic:
    """A topic to create; `assign` lists (partition, brokers); names of settings have `_` for `.`."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=at, broker_ids=list(brokers)) for at, brokers in assign],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def _create(name: str, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Case:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=20_000, validate_only=validate_only)
    return Case(f"create: {name}", version, lambda ids: request)


def _delete_names(name: str, *names: str, version: int) -> Case:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=20_000)
    return Case(f"delete: {name}", version, lambda ids: request)


def _delete(name: str, make: Callable[[Ids], list[DeleteTopicState]]) -> Case:
    return Case(f"delete: {name}", 6, lambda ids: DeleteTopicsRequest(topics=make(ids), timeout_ms=20_000))


def _grow(name: str, *topics: tuple[str, int, Any], version: int = 3, validate_only: bool = False) -> Case:
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=each,
                count=count,
                assignments=None if assign is None else [CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assign],
            )
            for each, count, assign in topics
        ],
        timeout_ms=20_000,
        validate_only=validate_only,
    )
    return Case(f"grow: {name}", version, lambda ids: request)


def _elect(name: str, election_type: int, *partitions: tuple[str, list[int]], every: bool = False, version: int = 2) -> Case:
    wanted = None if every else [TopicPartitions(topic=each, partitions=numbers) for each, numbers in partitions]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout_ms=20_000)
    return Case(f"elect: {name}", version, lambda ids: request)


def _update(name: str, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Case:
    """Updates are (feature, level, upgrade type); in version 0 the type says whether a downgrade is allowed."""
    request = UpdateFeaturesRequest(
        timeout_ms=20_000,
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=level, allow_downgrade=kind != 1)
            if version == 0
            else FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
            for feature, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return Case(f"features: {name}", version, lambda ids: request)


LONGEST = "n" * 249

CASES: list[Case] = [
    _create("no topics"),
    _create("empty name", topic("")),
    _create("one dot", topic(".")),
    _create("two dots", topic("..")),
    _create("a slash", topic("a/b")),
    _create("a space", topic("a b")),
    _create("not ascii", topic("tøpic")),
    _create("longest name", topic(LONGEST), validate_only=True),
    _create("too long a name", topic(LONGEST + "n")),
    _create("exists", topic("exists")),
    _create("exists, old version", topic("exists"), version=2),
    _create("exists, and nothing else is right either", topic("exists", 0, -7, retention_ms="x")),
    _create("collides with a dotted name", topic("dotted_name")),
    _create("does not collide without dots", topic("dotted-name"), validate_only=True),
    _create("two that collide with each other", topic("x.y"), topic("x_y"), validate_only=True),
    _create("twice in the request", topic("twice"), topic("twice")),
    _create("three times, among others", topic("t3"), topic("fine"), topic("t3"), topic("t3"), validate_only=True),
    _create("twice, and it exists", topic("exists"), topic("exists")),
    _create("the metadata log", topic("__cluster_metadata")),
    _create("twice the metadata log", topic("__cluster_metadata"), topic("__cluster_metadata")),
    _create("no partitions", topic("p0", 0)),
    _create("minus two partitions", topic("p-2", -2)),
    _create("no replicas", topic("r0", 1, 0)),
    _create("minus two replicas", topic("r-2", 1, -2)),
    _create("too many replicas", topic("r2", 1, 2)),
    _create("far too many replicas", topic("r9", 1, 32767)),
    _create("neither partitions nor replicas", topic("none", 0, 0)),
    _create("defaults", topic("defaults", -1, -1), validate_only=True),
    _create("defaults, old version", topic("defaults", -1, -1), version=2, validate_only=True),
    _create("unknown setting", topic("c1", no_such_setting="1")),
    _create("bad number", topic("c2", retention_ms="soon")),
    _create("number out of range", topic("c3", segment_bytes="3")),
    _create("empty number", topic("c4", retention_ms="")),
    _create("null setting", topic("c5", retention_ms=None)),
    _create("bad word", topic("c6", cleanup_policy="compost")),
    _create("lags crossed", topic("c7", min_compaction_lag_ms="10", max_compaction_lag_ms="5")),
    _create("a broker's setting", topic("c8", log_retention_ms="5")),
    _create("bad setting and bad replicas", topic("c9", 1, 5, retention_ms="x")),
    _create("bad setting and bad name", topic("c 9", 1, 1, retention_ms="x")),
    _create("good setting", topic("c10", retention_ms="1000"), validate_only=True),
    _create("remote storage", topic("c11", remote_storage_enable="true")),
    _create("assigned", topic("a0", -1, -1, assign=[(0, [1])]), validate_only=True),
    _create("assigned with numbers", topic("a1", 1, -1, assign=[(0, [1])])),
    _create("assigned with a factor", topic("a2", -1, 1, assign=[(0, [1])])),
    _create("assigned with both", topic("a3", 1, 1, assign=[(0, [1])])),
    _create("assigned to nobody", topic("a4", -1, -1, assign=[(0, [])])),
    _create("assigned to an unknown broker", topic("a5", -1, -1, assign=[(0, [1, 7])])),
    _create("assigned twice to one broker", topic("a6", -1, -1, assign=[(0, [1, 1])])),
    _create("assigned with a gap", topic("a7", -1, -1, assign=[(0, [1]), (2, [1])])),
    _create("assigned from one on", topic("a8", -1, -1, assign=[(1, [1])])),
    _create("a partition assigned twice", topic("a9", -1, -1, assign=[(0, [1]), (0, [1])])),
    _create("a negative partition", topic("a10", -1, -1, assign=[(-1, [1])])),
    _create("assigned unevenly", topic("a11", -1, -1, assign=[(0, [1]), (1, [1, 1])])),
    _create("a negative broker", topic("a12", -1, -1, assign=[(0, [-1])])),
    _create("ten thousand and one", topic("big", 10_001)),
    _create("ten thousand", topic("big", 10_000), validate_only=True),
    _create("one less", topic("big", 9_999), validate_only=True),
    _create("ten thousand by two", topic("big1", 5_000), topic("big2", 5_001), validate_only=True),
    _create("too many, and one exists", topic("big", 10_001), topic("exists")),
    _create("one good, one bad", topic("good"), topic("b/d")),
    _create("the good one again", topic("good")),
    _delete_names("nothing", version=5),
    _delete_names("unknown", "nowhere", version=5),
    _delete_names("unknown, oldest version", "nowhere", version=1),
    _delete_names("twice", "victim", "victim", version=5),
    _delete_names("twice unknown", "nowhere", "nowhere", version=4),
    _delete_names("bad name", "a/b", version=5),
    _delete_names("empty name", "", version=5),
    _delete("unknown id", lambda ids: [DeleteTopicState(name=None, topic_id=NOWHERE)]),
    _delete("neither", lambda ids: [DeleteTopicState(name=None, topic_id=ZERO_UUID)]),
    _delete("both", lambda ids: [DeleteTopicState(name="victim", topic_id=ids["victim"])]),
    _delete("an id twice", lambda ids: [DeleteTopicState(name=None, topic_id=ids["victim"])] * 2),
    _delete("a name twice", lambda ids: [DeleteTopicState(name="victim")] * 2),
    _delete("unknown name", lambda ids: [DeleteTopicState(name="nowhere")]),
    _delete("the metadata log", lambda ids: [DeleteTopicState(name="__cluster_metadata")]),
    _delete(
        "by name and by id",
        lambda ids: [DeleteTopicState(name="by-both"), DeleteTopicState(name=None, topic_id=ids["by-both"])],
    ),
    _delete("by name after all", lambda ids: [DeleteTopicState(name="by-both")]),
    _delete("by id", lambda ids: [DeleteTopicState(name=None, topic_id=ids["victim"])]),
    _delete("by id again", lambda ids: [DeleteTopicState(name=None, topic_id=ids["victim"])]),
    _grow("nothing"),
    _grow("unknown", ("nowhere", 2, None)),
    _grow("the same", ("growing", 1, None)),
    _grow("fewer", ("exists", 1, None)),
    _grow("none", ("exists", 0, None)),
    _grow("negative", ("exists", -1, None)),
    _grow("twice", ("growing", 2, None), ("growing", 2, None)),
    _grow("only to see", ("growing", 3, None), validate_only=True),
    _grow("only to see, oldest version", ("growing", 3, None), version=0, validate_only=True),
    _grow("too few assigned", ("growing", 3, [[1]])),
    _grow("too many assigned", ("growing", 2, [[1], [1]])),
    _grow("none assigned", ("growing", 2, [])),
    _grow("assigned to nobody", ("growing", 2, [[]])),
    _grow("assigned to an unknown broker", ("growing", 2, [[9]])),
    _grow("assigned to more than others", ("growing", 2, [[1, 1]])),
    _grow("very many", ("growing", 10_001, None), validate_only=True),
    _grow("assigned", ("growing", 2, [[1]])),
    _grow("one good, one bad", ("growing", 3, None), ("exists", 2, None)),
    _elect("nobody", 0),
    _elect("unknown topic", 0, ("nowhere", [0])),
    _elect("unknown partition", 0, ("exists", [9])),
    _elect("negative partition", 0, ("exists", [-1])),
    _elect("not needed", 0, ("exists", [0, 1])),
    _elect("not needed, unclean", 1, ("exists", [0])),
    _elect("unknown type", 2, ("exists", [0])),
    _elect("unknown type, of all", 5, every=True),
    _elect("all", 0, every=True),
    _elect("all, unclean", 1, every=True),
    _elect("oldest version", 0, ("exists", [0]), ("nowhere", [3]), version=0),
    _elect("a partition twice", 0, ("exists", [0, 0]), version=1),
    _update("nothing"),
    _update("unknown feature", ("no.such.feature", 1, 1)),
    _update("unknown feature to zero", ("no.such.feature", 0, 2)),
    _update("unknown type", ("group.version", 1, 0)),
    _update("unknown type, above", ("group.version", 1, 9)),
    _update("negative", ("group.version", -1, 2)),
    _update("too high", ("group.version", 2, 1)),
    _update("metadata too high", ("metadata.version", 31, 1)),
    _update("metadata too low", ("metadata.version", 6, 2)),
    _update("metadata to zero", ("metadata.version", 0, 2)),
    _update("metadata as it is", ("metadata.version", 30, 1), validate_only=True),
    _update("metadata down, as an upgrade", ("metadata.version", 29, 1)),
    _update("metadata down, losing", ("metadata.version", 29, 2)),
    _update("metadata down, losing, unsafely", ("metadata.version", 29, 3)),
    _update("down as an upgrade", ("transaction.version", 1, 1)),
    _update("up as a downgrade", ("transaction.version", 2, 2), validate_only=True),
    _update("up beyond as a downgrade", ("transaction.version", 3, 2)),
    _update("only to see", ("transaction.version", 1, 2), validate_only=True),
    _update("down", ("transaction.version", 1, 2)),
    _update("up as a safe downgrade", ("transaction.version", 2, 2)),
    _update("up again", ("transaction.version", 2, 1)),
    _update("one good, one bad", ("transaction.version", 1, 2), ("group.version", 7, 1)),
    _update("kraft as it is", ("kraft.version", 1, 1)),
    _update("kraft down", ("kraft.version", 0, 2)),
    _update("kraft down, unsafely", ("kraft.version", 0, 3)),
    _update("kraft too high", ("kraft.version", 2, 1)),
    _update("version 0, down", ("group.version", 0, 2), version=0),
    _update("version 0, not allowed down", ("group.version", 0, 1), version=0),
    _update("version 1, results", ("group.version", 1, 1), version=1, validate_only=True),
    _update("version 1, refused", ("group.version", 5, 1), version=1),
    _update("elr down and up", ("eligible.leader.replicas.version", 0, 2)),
    _update("elr up", ("eligible.leader.replicas.version", 1, 1)),
]


def codes_of(response: Any, names: dict[Uuid, str]) -> Codes:
    """The error codes in a response of any of these APIs, by topic, partition or feature; `names` maps topic ids to names."""
    kind = type(response).__name__
    if kind == "CreateTopicsResponse":
        return {each.name: each.error_code for each in response.topics}
    if kind == "DeleteTopicsResponse":
        # A response about an id may or may not have the topic's name.
        codes: Codes = {}
        for each in response.responses:
            known = names.get(each.topic_id) if each.topic_id != ZERO_UUID else None
            codes[each.name if each.name is not None else known or uuid_text(each.topic_id)] = each.error_code
        return codes
    if kind == "CreatePartitionsResponse":
        return {each.name: each.error_code for each in response.results}
    if kind == "ElectLeadersResponse":
        return {"": response.error_code} | {
            f"{each.topic}-{result.partition_id}": result.error_code
            for each in response.replica_election_results
            for result in each.partition_result
        }
    assert kind == "UpdateFeaturesResponse", kind
    return {"": response.error_code} | {each.feature: each.error_code for each in response.results}
