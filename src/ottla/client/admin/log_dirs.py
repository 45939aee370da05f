"""Log directories of brokers: describe them and the replicas in them, move replicas (DescribeLogDirs, AlterReplicaLogDirs)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.checks import listed, mapping, number, numbers, partitions, text, topic_name
from ottla.client.admin.requests import raise_refused, refused, refused_or
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class Replica(NamedTuple):
    """A partition's replica on one broker."""

    topic: str
    partition: int
    broker: int


class ReplicaInfo(NamedTuple):
    """A replica in a log directory. A future replica is being filled there to take the current one's place."""

    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory of a broker."""

    path: str
    error: KafkaError | None
    """Why the directory is offline; None if it is not."""
    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    """The size of its disk; None from brokers before 3.3."""
    usable_bytes: int | None
    is_cordoned: bool
    """Whether the broker places no new replicas in it."""


class ReplicaLogDir(NamedTuple):
    """Where a replica is, and where it is being moved to. A path is None if there is no such replica."""

    path: str | None
    offset_lag: int
    future_path: str | None
    future_offset_lag: int


async def describe_log_dirs(
    cluster: Cluster,
    brokers: Iterable[int] | None = None,
    *,
    wanted_partitions: Iterable[TopicPartition | tuple[str, int]] | None = None,
) -> Results[int, dict[str, LogDirDescription]]:
    """The log directories of brokers (None: of all), by path, with these partitions (None: all)."""
    asked = None if wanted_partitions is None else partitions(wanted_partitions, "wanted_partitions")
    if brokers is None:
        ids = sorted(broker.node_id for broker in (await cluster.metadata([])).brokers)
    else:
        ids = list(dict.fromkeys(numbers(brokers, "brokers")))

    async def ask(broker_id: int) -> dict[str, LogDirDescription] | KafkaError:
        try:
            response: DescribeLogDirsResponse = await cluster.ask_broker(
                broker_id, DescribeLogDirsRequest(topics=_topics(asked))
            )
            raise_refused(response.error_code, f"broker {broker_id} does not show its log directories")
        except KafkaError as error:
            return error
        return {each.log_dir: _directory(each) for each in response.results}

    answers = await asyncio.gather(*map(ask, ids))
    return results_for(ids, dict(zip(ids, answers, strict=True)))


def _topics(wanted: list[TopicPartition] | None) -> list[DescribableLogDirTopic] | None:
    if wanted is None:
        return None
    found: dict[str, DescribableLogDirTopic] = {}
    for topic, index in wanted:
        found.setdefault(topic, DescribableLogDirTopic(topic=topic)).partitions.append(index)
    return list(found.values())


def _directory(result: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        result.log_dir,
        refused(result.error_code, f"log directory {result.log_dir}") if result.error_code else None,
        {
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in result.topics
            for each in topic.partitions
        },
        result.total_bytes if result.total_bytes >= 0 else None,
        result.usable_bytes if result.usable_bytes >= 0 else None,
        result.is_cordoned,
    )


async def describe_replica_log_dirs(
    cluster: Cluster, replicas: Iterable[Replica | tuple[str, int, int]]
) -> Results[Replica, ReplicaLogDir]:
    """In which log directory each replica is, and where it is being moved to."""
    wanted = list(dict.fromkeys(_replica(each, "replicas") for each in listed(replicas, "replicas")))
    by_broker: dict[int, list[Replica]] = {}
    for each in wanted:
        by_broker.setdefault(each.broker, []).append(each)

    async def ask(broker_id: int, items: list[Replica]) -> dict[Replica, ReplicaLogDir | KafkaError]:
        some = [TopicPartition(each.topic, each.partition) for each in items]
        results = await describe_log_dirs(cluster, [broker_id], wanted_partitions=some)
        error = results.errors.get(broker_id)
        if error is not None:
            return dict.fromkeys(items, error)
        return {each: _place(each, results[broker_id].values()) for each in items}

    found: dict[Replica, ReplicaLogDir | KafkaError] = {}
    for answer in await asyncio.gather(*(ask(*each) for each in by_broker.items())):
        found |= answer
    return results_for(wanted, found)


def _place(replica: Replica, directories: Iterable[LogDirDescription]) -> ReplicaLogDir:
    place = ReplicaLogDir(None, -1, None, -1)
    for directory in directories:
        info = directory.replicas.get(TopicPartition(replica.topic, replica.partition))
        if info is not None and info.is_future:
            place = place._replace(future_path=directory.path, future_offset_lag=info.offset_lag)
        elif info is not None:
            place = place._replace(path=directory.path, offset_lag=info.offset_lag)
    return place


async def alter_replica_log_dirs(
    cluster: Cluster, paths: Mapping[Replica | tuple[str, int, int], str]
) -> Results[Replica, None]:
    """Move replicas to other log directories of their brokers: `{Replica("orders", 0, broker=1): "/disk2/kafka"}`.

    A replica that does not exist yet will be created in that directory.
    """
    mapping(paths, "paths")
    wanted = {_replica(key, "paths"): text(path, f"paths[{key!r}]") for key, path in paths.items()}
    by_broker: dict[int, list[Replica]] = {}
    for each in wanted:
        by_broker.setdefault(each.broker, []).append(each)

    async def ask(broker_id: int, items: list[Replica]) -> dict[Replica, KafkaError | None]:
        directories: dict[str, dict[str, AlterReplicaLogDirTopic]] = {}
        for each in items:
            topics = directories.setdefault(wanted[each], {})
            topics.setdefault(each.topic, AlterReplicaLogDirTopic(name=each.topic)).partitions.append(each.partition)
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=list(topics.values())) for path, topics in directories.items()]
        )
        try:
            response: AlterReplicaLogDirsResponse = await cluster.ask_broker(broker_id, request)
        except KafkaError as error:
            return dict.fromkeys(items, error)
        found: dict[Replica, KafkaError | None] = {}
        for topic in response.results:
            for result in topic.partitions:
                key = Replica(topic.topic_name, result.partition_index, broker_id)
                about = f"the replica of partition {key.topic}-{key.partition} on broker {broker_id} was not moved"
                found[key] = refused_or(result.error_code, about, None, None)
        return found

    found: dict[Replica, KafkaError | None] = {}
    for answer in await asyncio.gather(*(ask(*each) for each in by_broker.items())):
        found |= answer
    return results_for(wanted, found)


def _replica(value: Replica | tuple[str, int, int], argument: str) -> Replica:
    if not isinstance(value, tuple) or len(value) != 3:
        raise TypeError(f"{argument}: a replica is Replica(topic, partition, broker), not {value!r}")
    return Replica(topic_name(value[0], argument), number(value[1], argument), number(value[2], argument))
