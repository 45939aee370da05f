"""The `cluster` verb: brokers, controller and what is wrong with them; the id; and the removal of a broker that is gone.

`unregister` says what the broker holds, asks, and removes its registration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from ottla.cli.brokers import HEADINGS, BrokerRow, broker_json, broker_rows, complete_brokers
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_table, print_title, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.admin.cluster_state import FeatureMetadata, describe_cluster, describe_features, unregister_broker
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState, Problem, ProblemKind, cluster_state, problems_of
from ottla.errors import OttlaError
from ottla.errors.texts import counted, listed
from ottla.metadata.features import METADATA_VERSION, metadata_version_name

DESCRIBE_EXAMPLES = """\b
Examples:
  ottla cluster describe
  ottla cluster describe --check            exit code 1 if anything is wrong, for scripts and health checks
  ottla cluster describe --json
"""

_SHOWN = 20
OF_PARTITIONS = (ProblemKind.OFFLINE_PARTITION, ProblemKind.UNDER_REPLICATED)
WHY = "why, and what to do about partitions: ottla topics describe --check"
HEALTHY = "every broker is active, every partition has a leader, and every replica is in sync"


@click.command("describe", epilog=DESCRIBE_EXAMPLES)
@click.option("--check", is_flag=True, help="End with exit code 1 if anything is wrong.")
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, check: bool, as_json: bool, plain: bool) -> int:
    """Show the cluster: its brokers, its active controller, its features, and what is wrong.

    Wrong are fenced brokers, replicas on brokers that are not registered, controllers that do not follow, and partitions
    without a leader or with replicas out of sync.
    """
    state, features = with_cluster(settings, _ask)
    problems = problems_of(state)
    if state.note is not None:
        warn(state.note)
    if as_json:
        print_json(_as_json(state, features, problems))
    elif is_for_people(as_json, plain):
        _print_table(state, features, problems)
    else:
        _print_lines(state, features, problems)
    return 1 if check and problems else 0


async def _ask(cluster: Cluster) -> tuple[ClusterState, FeatureMetadata]:
    features = await describe_features(cluster)  # before the state, which may wait for a quorum that does not answer
    return await cluster_state(cluster), features


def _controller(state: ClusterState) -> str:
    if state.quorum is None:
        return "unknown"
    return f"{state.quorum.leader_id} (epoch {state.quorum.leader_epoch})" if state.quorum.leader_id >= 0 else "none"


def _metadata_version(features: FeatureMetadata) -> str:
    level = features.finalized.get(METADATA_VERSION)
    return "unknown" if level is None else metadata_version_name(level.highest)


def _partitions(state: ClusterState) -> int:
    return sum(len(topic.partitions) for topic in state.topics.values())


def _print_table(state: ClusterState, features: FeatureMetadata, problems: list[Problem]) -> None:
    details = [
        f"active controller: {_controller(state)}, metadata.version: {_metadata_version(features)}",
        f"{counted(len(state.topics), 'topic')} with {counted(_partitions(state), 'partition')}, internal ones too",
    ]
    rows = [each.cells for each in broker_rows(state)]
    print_table(f"cluster {state.described.cluster_id}", HEADINGS, rows, details)
    if not problems:
        print_title("Nothing is wrong", HEALTHY)
        return
    more = [f"and {len(problems) - _SHOWN} more: --json shows all"] if len(problems) > _SHOWN else []
    hint = [WHY] if any(each.kind in OF_PARTITIONS for each in problems) else []
    print_title("What is wrong", *(each.text for each in problems[:_SHOWN]), *more, *hint)


def _print_lines(state: ClusterState, features: FeatureMetadata, problems: list[Problem]) -> None:
    say(f"ClusterId: {state.described.cluster_id}")
    say(f"Controller: {_controller(state)}")
    say(f"MetadataVersion: {_metadata_version(features)}")
    say(f"Topics: {len(state.topics)}", f"Partitions: {_partitions(state)}")
    for each in broker_rows(state):
        say(*_labelled(each))
    for problem in problems:
        say(f"Problem: {problem.kind}", problem.text)


def _labelled(row: BrokerRow) -> list[str]:
    return [
        f"Broker: {row.node.id}",
        f"State: {row.state}",
        f"Endpoint: {row.endpoint}",
        f"Rack: {row.node.rack or '-'}",
        f"Leaders: {row.leaders}",
        f"Replicas: {row.replicas}",
        f"OutOfSync: {row.out_of_sync}",
    ]


def _as_json(state: ClusterState, features: FeatureMetadata, problems: list[Problem]) -> dict[str, Any]:
    quorum = state.quorum
    return {
        "clusterId": state.described.cluster_id,
        "controller": None if quorum is None or quorum.leader_id < 0 else quorum.leader_id,
        "controllerEpoch": None if quorum is None else quorum.leader_epoch,
        "metadataVersion": _metadata_version(features),
        "features": {name: level.highest for name, level in sorted(features.finalized.items())},
        "topics": len(state.topics),
        "partitions": _partitions(state),
        "brokers": [broker_json(each) for each in broker_rows(state)],
        "isHealthy": not problems,
        "problems": [{"kind": str(each.kind), "text": each.text, "partitions": list(each.partitions)} for each in problems],
    }


IDENTITY_EXAMPLES = """\b
Examples:
  ottla cluster id
  ottla cluster cluster-id --bootstrap-server localhost:9092    Kafka's spelling
"""


@click.command("id", epilog=IDENTITY_EXAMPLES)
@json_option
@cluster_options()
def identity(settings: ClientSettings, as_json: bool) -> None:
    """Print the id of the cluster: `Cluster ID: …`, as kafka-cluster does; on a terminal the id alone."""
    described = with_cluster(settings, describe_cluster)
    if as_json:
        print_json({"clusterId": described.cluster_id})
    else:
        say(described.cluster_id if is_for_people() else f"Cluster ID: {described.cluster_id}")


UNREGISTER_EXAMPLES = """\b
Examples:
  ottla cluster unregister 4                                           says what broker 4 holds, and asks
  ottla cluster unregister 4 --yes                                     in a script
  ottla cluster unregister --id 4 --bootstrap-server localhost:9092 --yes    Kafka's spelling
"""
_NAMES_SHOWN = 5


class Held(NamedTuple):
    """What a broker holds."""

    replicas: list[str]
    led: list[str]
    only_here: list[str]
    """Partitions without another replica."""
    last_in_sync: list[str]
    """Partitions with other replicas, none of which is known to hold everything that was acknowledged."""
    is_voter: bool


@click.command("unregister", epilog=UNREGISTER_EXAMPLES)
@click.argument("broker", required=False, type=click.IntRange(0), shell_complete=complete_brokers)
@click.option("--id", "flagged", type=click.IntRange(0), metavar="BROKER", help="Kafka's spelling of BROKER.")
@click.option("--force", is_flag=True, help="Unregister a broker that is alive. An Ottla broker registers again at once.")
@yes_option
@cluster_options()
def unregister(settings: ClientSettings, broker: int | None, flagged: int | None, force: bool, yes: bool) -> None:
    """Remove a broker that is gone for good from the cluster's metadata.

    Stop it first, and move its replicas to other brokers: partitions keep a removed broker as a replica until they are
    reassigned. Says what the broker holds, and asks; without a terminal it needs --yes.
    """
    broker_id = flagged if broker is None else broker
    if broker_id is None:
        raise click.UsageError("name the broker, for example: ottla cluster unregister 4")
    state = with_cluster(settings, cluster_state)
    node = state.described.nodes.get(broker_id)
    if node is not None or not state.knows_fenced:  # the controller refuses a broker that is not registered, and says so
        if node is not None and not node.is_fenced and not force:
            raise OttlaError(
                f"broker {broker_id} at {node.host}:{node.port} is alive, so it was not unregistered. Stop it, and look at "
                "`ottla brokers list` until it is fenced. With --force it is unregistered now: it leads nothing until it "
                "registers again"
            )
        held = held_by(state, broker_id)
        for text in warnings(broker_id, held):
            warn(text)
        confirm(f"Unregister broker {broker_id}, which holds {counted(len(held.replicas), 'replica')}?", yes, needs_yes=True)
    with_cluster(settings, lambda cluster: unregister_broker(cluster, broker_id))
    say(f"Broker {broker_id} is no longer registered.")


def held_by(state: ClusterState, broker_id: int) -> Held:
    """The replicas and the vote of a broker."""
    held = Held([], [], [], [], state.quorum is not None and any(each.id == broker_id for each in state.quorum.voters))
    for topic, described in state.topics.items():
        for each in described.partitions:
            if broker_id not in each.replicas:
                continue
            name = f"{topic}-{each.partition}"
            held.replicas.append(name)
            if each.leader == broker_id:
                held.led.append(name)
            if len(each.replicas) == 1:
                held.only_here.append(name)
            elif not set(each.isr) - {broker_id}:
                held.last_in_sync.append(name)
    return held


def warnings(broker_id: int, held: Held) -> list[str]:
    """What to know before the broker is unregistered, the worst first."""
    said = []
    if held.only_here:
        said.append(
            f"broker {broker_id} has the only replica of {_some(held.only_here)}: nothing in there can be read without it. "
            "Start it and move them to other brokers first (ottla reassign)"
        )
    if held.last_in_sync:
        said.append(
            f"no other replica of {_some(held.last_in_sync)} is in sync: without broker {broker_id} there is no leader, or "
            "acknowledged records are lost. Start it and wait until the others are in sync"
        )
    if held.replicas:
        leads = f" and leads {len(held.led):,}" if held.led else ""
        said.append(
            f"broker {broker_id} holds {counted(len(held.replicas), 'replica')}{leads}: they stay under-replicated until they "
            "are reassigned (ottla reassign generate --brokers with the brokers that stay)"
        )
    if held.is_voter:
        said.append(
            f"node {broker_id} is a voter of the metadata quorum, and stays one: `ottla quorum remove {broker_id}` takes its "
            "vote"
        )
    return said


def _some(names: list[str]) -> str:
    return listed(names, _NAMES_SHOWN)


EXAMPLES = """\b
Examples:
  ottla cluster describe
  ottla cluster describe --check            exit code 1 if anything is wrong
  ottla cluster id
  ottla cluster unregister 4
"""

ACTIONS = {
    "describe": (describe, "Show brokers, controller and what is wrong."),
    "id": (identity, "Print the id of the cluster."),
    "unregister": (unregister, "Remove a broker that is gone for good."),
}
ALIASES = {"cluster-id": "id"}


@click.command("cluster", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
def cluster() -> None:
    """Show the cluster and what is wrong with it, and remove brokers.

    Takes the actions of Kafka's kafka-cluster, too. `ottla cluster ACTION --help` shows the flags of an action.
    """
