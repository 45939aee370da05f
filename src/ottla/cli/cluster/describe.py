"""`ottla cluster describe`: brokers, controller and what is wrong."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.brokers.rows import HEADINGS, BrokerRow, broker_json, broker_rows
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, print_title, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.cluster_state import FeatureMetadata, describe_features
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState, Problem, ProblemKind, cluster_state, problems_of
from ottla.errors.texts import counted
from ottla.metadata.features import METADATA_VERSION, metadata_version_name

EXAMPLES = """\b
Examples:
  ottla cluster describe
  ottla cluster describe --check            exit code 1 if anything is wrong, for scripts and health checks
  ottla cluster describe --json
"""

_SHOWN = 20
OF_PARTITIONS = (ProblemKind.OFFLINE_PARTITION, ProblemKind.UNDER_REPLICATED)
WHY = "why, and what to do about partitions: ottla topics describe --check"
HEALTHY = "every broker is active, every partition has a leader, and every replica is in sync"


@click.command("describe", epilog=EXAMPLES)
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
