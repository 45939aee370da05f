"""`ottla topics create`."""

from __future__ import annotations

import copy

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, parse_pairs
from ottla.cli.topics.choosing import parse_assignment
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import uuid_text
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

EXAMPLES = """\b
Examples:
  ottla topics create orders --partitions 3 --config retention.ms=86400000
  ottla topics create prices --config cleanup.policy=compact
  ottla topics create orders prices --if-not-exists
"""


@click.command("create", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option("--topic", "flagged", multiple=True, metavar="NAME", help="Kafka's spelling of NAMES. Repeatable.")
@click.option("--partitions", type=click.IntRange(1), help="How many partitions.  [default: the cluster's num.partitions]")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="How many replicas of each.  [default: the cluster's default.replication.factor]",
)
@click.option("--replica-assignment", metavar="1:2,2:3", help="Which brokers hold which partition, instead of the two above.")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic. Repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@click.option("--validate-only", is_flag=True, help="Check whether the topic could be created, without creating it.")
@json_option
@cluster_options()
def create(
    settings: ClientSettings,
    names: tuple[str, ...],
    flagged: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> int:
    """Create the topics NAMES, all with the same partitions and settings."""
    if bool(names) == bool(flagged):
        raise click.UsageError("name the topic to create, for example: ottla topics create orders --partitions 3")
    template = CreatableTopic(num_partitions=partitions or -1, replication_factor=replication_factor or -1)
    template.configs = [CreatableTopicConfig(name=key, value=value) for key, value in parse_pairs(configs, "--config").items()]
    if replica_assignment is not None:
        if partitions or replication_factor:
            raise click.UsageError(
                "--replica-assignment sets partitions and replicas: leave --partitions and --replication-factor out"
            )
        template.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in enumerate(parse_assignment(replica_assignment))
        ]
    wanted = []
    for name in dict.fromkeys(names or flagged):
        each = copy.copy(template)
        each.name = name
        wanted.append(each)
        if "." in each.name and "_" in each.name:
            warn(f"metric names turn . and _ into the same character: {each.name} may collide with another topic")
    results = with_cluster(settings, lambda cluster: _create_all(cluster, wanted, validate_only, if_not_exists))
    for result in results:
        if isinstance(result, KafkaError):
            warn(str(result))
        elif result is not None:
            _tell(result, validate_only, as_json)
    return 1 if any(isinstance(result, KafkaError) for result in results) else 0


def _tell(made: CreatableTopicResult, validate_only: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topic": made.name,
                "topicId": uuid_text(made.topic_id),
                "partitions": made.num_partitions,
                "replicationFactor": made.replication_factor,
                "configs": {each.name: each.value for each in made.configs or []},
            }
        )
    else:
        say(f"Topic {made.name} could be created." if validate_only else f"Created topic {made.name}.")


async def _create_all(
    cluster: Cluster, wanted: list[CreatableTopic], validate_only: bool, if_not_exists: bool
) -> list[CreatableTopicResult | KafkaError | None]:
    """Create each topic with its own request: one that is refused does not prevent the others."""
    results: list[CreatableTopicResult | KafkaError | None] = []
    for each in wanted:
        try:
            results.append(await _create(cluster, each, validate_only, if_not_exists))
        except KafkaError as refused:
            results.append(refused)
    return results


async def _create(
    cluster: Cluster, wanted: CreatableTopic, validate_only: bool, if_not_exists: bool
) -> CreatableTopicResult | None:
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=cluster.settings.request_timeout_ms, validate_only=validate_only)

    async def attempt() -> CreatableTopicResult | None:
        response: CreateTopicsResponse = await cluster.ask_controller(request)
        result = response.topics[0]
        if if_not_exists and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            return None
        if result.error_code:
            raise refusal(result.error_code, f"topic {wanted.name} was not created", result.error_message)
        return result

    made = await cluster.retrying(attempt)
    if made is not None and not validate_only:
        await cluster.see(made.name, lambda topic: any(each.leader_id >= 0 for each in topic.partitions))
    return made
