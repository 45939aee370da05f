"""`ottla topics create`."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, parse_pairs
from ottla.cli.configs import in_milliseconds
from ottla.cli.topics.choosing import parse_assignment
from ottla.cli.topics.seeing import see
from ottla.client.admin.topic_descriptions import TopicDescription
from ottla.client.admin.topics import BROKER_DEFAULT, CreatedTopic, NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, TopicExistsError
from ottla.ids import uuid_text

EXAMPLES = """\b
Examples:
  ottla topics create orders --partitions 3 --config retention.ms=1d
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
    if replica_assignment is not None and (partitions or replication_factor):
        raise click.UsageError(
            "--replica-assignment sets partitions and replicas: leave --partitions and --replication-factor out"
        )
    template = NewTopic(
        "",
        partitions or BROKER_DEFAULT,
        replication_factor or BROKER_DEFAULT,
        None if replica_assignment is None else parse_assignment(replica_assignment),
        in_milliseconds(parse_pairs(configs, "--config")),
    )
    wanted = [template._replace(name=name) for name in dict.fromkeys(names or flagged)]
    for each in wanted:
        if "." in each.name and "_" in each.name:
            warn(f"metric names turn . and _ into the same character: {each.name} may collide with another topic")
    results = with_cluster(settings, lambda cluster: _create_all(cluster, wanted, validate_only, if_not_exists))
    for result in results:
        if result is not None and not isinstance(result, KafkaError):
            _tell(result, validate_only, as_json)
    for text in dict.fromkeys(explain(result) for result in results if isinstance(result, KafkaError)):
        warn(text)  # once, if it is the cluster's and not a topic's
    return 1 if any(isinstance(result, KafkaError) for result in results) else 0


def _tell(made: CreatedTopic, validate_only: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topic": made.name,
                "topicId": uuid_text(made.id),
                "partitions": made.partitions,
                "replicationFactor": made.replication_factor,
                "configs": made.configs or {},
            }
        )
    else:
        say(f"Topic {made.name} could be created." if validate_only else f"Created topic {made.name}.")


async def _create_all(
    cluster: Cluster, wanted: list[NewTopic], validate_only: bool, if_not_exists: bool
) -> list[CreatedTopic | KafkaError | None]:
    """Create each topic with its own request: one that is refused does not prevent the others."""
    results: list[CreatedTopic | KafkaError | None] = []
    for each in wanted:
        try:
            made = (await create_topics(cluster, [each], validate_only=validate_only))[each.name]
            if not validate_only:
                await see(cluster, made.name, _has_leader)
            results.append(made)
        except KafkaError as error:
            results.append(None if if_not_exists and isinstance(error, TopicExistsError) else error)
    return results


def _has_leader(topic: TopicDescription | None) -> bool:
    return topic is not None and any(each.leader is not None for each in topic.partitions)
