"""Topics: create, delete, add partitions (CreateTopics, DeleteTopics, CreatePartitions)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin.checks import config_text, listed, mapping, new_topic_name, number, numbers, topic_name, topic_or_id
from ottla.client.admin.requests import refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.client.other_clients import NEW_TOPIC, explaining_arguments
from ottla.errors import ArgumentError, KafkaError, UnsupportedVersionError
from ottla.ids import Uuid, repr_with_ids, uuid_text
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

BROKER_DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to create. The broker's num.partitions and default.replication.factor apply where -1 is left."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    replicas: Mapping[int, Sequence[int]] | Sequence[Sequence[int]] | None = None
    """The brokers of each partition, preferred leader first. Takes the place of the two numbers."""
    configs: Mapping[str, object] | None = None


# A NamedTuple can define no __new__ of its own.
NewTopic.__new__ = explaining_arguments(NewTopic.__new__, NEW_TOPIC, "NewTopic")  # type: ignore[method-assign]


class CreatedTopic(NamedTuple):
    """A topic that was created. The counts are -1 and `configs` is None if the principal may not describe them."""

    name: str
    id: Uuid
    partitions: int
    replication_factor: int
    configs: dict[str, str | None] | None

    def __repr__(self) -> str:
        return repr_with_ids(self, self._fields)


class NewPartitions(NamedTuple):
    """The number of partitions that a topic shall have, and the brokers of each new one, if not the controller chooses."""

    total: int
    replicas: Sequence[Sequence[int]] | None = None


async def create_topics(
    cluster: Cluster, topics: Mapping[str, int] | Iterable[NewTopic | str], *, validate_only: bool = False
) -> Results[str, CreatedTopic]:
    """Create topics: `{"orders": 3}` by name and number of partitions, or a list of `NewTopic`.

    With `validate_only` the controller checks everything and creates nothing.
    """
    wanted = {each.name: _creatable(each) for each in _new_topics(topics)}

    async def ask(names: list[str]) -> dict[str, CreatedTopic | KafkaError]:
        request = CreateTopicsRequest(
            topics=[wanted[name] for name in names],
            timeout_ms=cluster.settings.request_timeout_ms,
            validate_only=validate_only,
        )
        response: CreateTopicsResponse = await cluster.ask_controller(request)
        return {each.name: _created(each) for each in response.topics}

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


def _new_topics(topics: Mapping[str, int] | Iterable[NewTopic | str]) -> list[NewTopic]:
    if isinstance(topics, Mapping):
        return [NewTopic(name, number(count, f"topics[{name!r}]", 1)) for name, count in topics.items()]
    found = [NewTopic(each) if isinstance(each, str) else each for each in listed(topics, "topics")]
    names = set()
    for each in found:
        if not isinstance(each, NewTopic):
            raise TypeError(f"topics: a topic to create is a name or a NewTopic, not {each!r}")
        if each.name in names:
            raise ArgumentError(f"topics: {each.name} is in the list twice")
        names.add(each.name)
    return found


def _creatable(topic: NewTopic) -> CreatableTopic:
    name = new_topic_name(topic.name, "topics")
    assignments = []
    if topic.replicas is not None:
        if (topic.partitions, topic.replication_factor) != (BROKER_DEFAULT, BROKER_DEFAULT):
            raise ArgumentError(f"topics: {name} has replicas, so leave out partitions and replication_factor")
        by_number = topic.replicas if isinstance(topic.replicas, Mapping) else dict(enumerate(topic.replicas))
        assignments = [
            CreatableReplicaAssignment(
                partition_index=number(index, f"topics: replicas of {name}"),
                broker_ids=numbers(brokers, f"topics: replicas[{index}] of {name}"),
            )
            for index, brokers in by_number.items()
        ]
    elif topic.partitions != BROKER_DEFAULT:
        number(topic.partitions, f"topics: partitions of {name}", 1)
    if topic.replication_factor != BROKER_DEFAULT:
        number(topic.replication_factor, f"topics: replication_factor of {name}", 1, 2**15 - 1)
    return CreatableTopic(
        name=name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=[
            CreatableTopicConfig(name=key, value=config_text(value, f"topics: configs[{key!r}] of {name}"))
            for key, value in (topic.configs or {}).items()
        ],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic | KafkaError:
    if result.error_code:
        return refused(result.error_code, f"topic {result.name} was not created", result.error_message)
    hidden = result.topic_config_error_code != 0 or result.configs is None
    configs = None if hidden else {each.name: each.value for each in result.configs or ()}
    return CreatedTopic(result.name, result.topic_id, result.num_partitions, result.replication_factor, configs)


async def delete_topics(cluster: Cluster, topics: Iterable[str | Uuid]) -> Results[str | Uuid, None]:
    """Delete topics by name, or by id (16 bytes)."""
    wanted = [topic_or_id(each, "topics") for each in dict.fromkeys(listed(topics, "topics"))]

    async def ask(items: list[str | Uuid]) -> dict[str | Uuid, KafkaError | None]:
        timeout_ms = cluster.settings.request_timeout_ms
        states = [
            DeleteTopicState(name=None, topic_id=each) if isinstance(each, bytes) else DeleteTopicState(name=each)
            for each in items
        ]
        try:
            response: DeleteTopicsResponse = await cluster.ask_controller(
                DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
            )
        except UnsupportedVersionError:  # before v6: by name only
            names = [each for each in items if isinstance(each, str)]
            if len(names) < len(items):
                raise
            response = await cluster.ask_controller(DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms))
        found: dict[str | Uuid, KafkaError | None] = {}
        for each in response.responses:
            key: str | Uuid = each.topic_id if each.topic_id in items or each.name is None else each.name
            shown = uuid_text(key) if isinstance(key, bytes) else key
            found[key] = refused_or(each.error_code, f"topic {shown} was not deleted", each.error_message, None)
        return found

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


async def create_partitions(
    cluster: Cluster, topics: Mapping[str, int | NewPartitions], *, validate_only: bool = False
) -> Results[str, None]:
    """Give topics more partitions: `{"orders": 6}` says how many they shall have in total."""
    mapping(topics, "topics")
    wanted = {topic_name(name, "topics"): _more_partitions(name, more) for name, more in topics.items()}

    async def ask(names: list[str]) -> dict[str, KafkaError | None]:
        request = CreatePartitionsRequest(
            topics=[wanted[name] for name in names],
            timeout_ms=cluster.settings.request_timeout_ms,
            validate_only=validate_only,
        )
        response: CreatePartitionsResponse = await cluster.ask_controller(request)
        return {
            each.name: refused_or(each.error_code, f"topic {each.name} did not get more partitions", each.error_message, None)
            for each in response.results
        }

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


def _more_partitions(name: str, more: int | NewPartitions) -> CreatePartitionsTopic:
    more = more if isinstance(more, NewPartitions) else NewPartitions(more)
    argument = f"topics[{name!r}]"
    assignments = None
    if more.replicas is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=numbers(brokers, argument)) for brokers in more.replicas]
    return CreatePartitionsTopic(name=name, count=number(more.total, argument, 1), assignments=assignments)
