"""`ottla quorum describe`. The lines for pipes are those of kafka-metadata-quorum."""

from __future__ import annotations

import json
from typing import Any

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import current_ms
from ottla.cli.quorum.replicas import LEADER, OBSERVER, Row, quorum_rows
from ottla.client.admin.cluster_state import describe_cluster
from ottla.client.admin.quorum import QuorumInfo, describe_metadata_quorum
from ottla.client.cluster import Cluster
from ottla.client.health import quorum_problems
from ottla.ids import uuid_text

EXAMPLES = """\b
Examples:
  ottla quorum describe
  ottla quorum describe --replication        in a pipe: one line for each replica, as kafka-metadata-quorum prints them
  ottla quorum describe --json
  ottla quorum describe --bootstrap-controller controller-1:9093
"""

_STATUS_WIDTH = 24


@click.command("describe", epilog=EXAMPLES)
@click.option("--status", is_flag=True, help="In a pipe: leader, epoch and lag (the default).")
@click.option("--replication", is_flag=True, help="In a pipe: a line for each replica.")
@click.option("--human-readable", "-hr", is_flag=True, help="With --replication: times as milliseconds before now.")
@json_option
@plain_option
@wide_option
@cluster_options(takes_controllers=True)
def describe(
    settings: ClientSettings, status: bool, replication: bool, human_readable: bool, as_json: bool, plain: bool
) -> None:
    """Show the leader, the voters and the observers of the metadata quorum, and how far each has got.

    The leader is the active controller. Observers follow without a vote: brokers, and controllers that may be added.
    """
    if status and replication:
        raise click.UsageError("--status and --replication cannot be used together: choose one of them")
    cluster_id, quorum = with_cluster(settings, _ask)
    if as_json:
        print_json(_as_json(cluster_id, quorum))
    elif is_for_people(as_json, plain):
        _print_table(cluster_id, quorum)
    elif replication:
        _print_replication(quorum, human_readable)
    else:
        _print_status(cluster_id, quorum)


async def _ask(cluster: Cluster) -> tuple[str, QuorumInfo]:
    quorum = await describe_metadata_quorum(cluster)
    return (await describe_cluster(cluster)).cluster_id, quorum


def _ago(timestamp_ms: int | None) -> str:
    return "-" if timestamp_ms is None else f"{max(0, current_ms() - timestamp_ms):,} ms ago"


def _print_table(cluster_id: str, quorum: QuorumInfo) -> None:
    leader = str(quorum.leader_id) if quorum.leader_id >= 0 else "none"
    title = f"metadata quorum of cluster {cluster_id}"
    details = [f"leader: {leader}, epoch: {quorum.leader_epoch}, high watermark: {quorum.high_watermark}"]
    rows = [
        (
            row.replica.id,
            row.role,
            row.replica.log_end_offset,
            row.lag,
            _ago(row.replica.last_caught_up),
            row.endpoints,
            uuid_text(row.replica.directory_id),
        )
        for row in quorum_rows(quorum)
    ]
    headings = ("#Node", "Role", "#Log end", "#Lag", "~Caught up", "=Endpoints", "~Directory id")
    print_table(title, headings, rows, details)
    for problem in quorum_problems(quorum):
        say(f"! {problem.text}")
    if len(quorum.voters) % 2 == 0:
        say(f"! {len(quorum.voters)} voters survive no more failures than {len(quorum.voters) - 1}: prefer an odd number")


def _print_status(cluster_id: str, quorum: QuorumInfo) -> None:
    """Kafka's own lines."""
    end, leader_time = _leader_position(quorum)
    followers = [each for each in quorum.voters if each.id != quorum.leader_id]
    lags = [end - each.log_end_offset for each in followers]
    times = [_lag_ms(leader_time, each.last_caught_up) for each in followers if each.log_end_offset < end]
    for name, value in (
        ("ClusterId", cluster_id),
        ("LeaderId", quorum.leader_id),
        ("LeaderEpoch", quorum.leader_epoch),
        ("HighWatermark", quorum.high_watermark),
        ("MaxFollowerLag", max([0, *lags])),
        ("MaxFollowerLagTimeMs", max([0, *times])),
        ("CurrentVoters", _listed(quorum, is_observer=False)),
        ("CurrentObservers", _listed(quorum, is_observer=True)),
    ):
        say(f"{name}:".ljust(_STATUS_WIDTH) + str(value))


def _leader_position(quorum: QuorumInfo) -> tuple[int, int | None]:
    for each in quorum.voters:
        if each.id == quorum.leader_id:
            return each.log_end_offset, each.last_caught_up
    return 0, None


def _lag_ms(leader_time: int | None, time: int | None) -> int:
    return -1 if leader_time is None or time is None else max(0, leader_time - time)


def _listed(quorum: QuorumInfo, is_observer: bool) -> str:
    found = []
    for row in quorum_rows(quorum):
        if (row.role == OBSERVER) == is_observer:
            entry = {"id": row.replica.id, "directoryId": uuid_text(row.replica.directory_id)}
            if not is_observer:
                entry["endpoints"] = [
                    f"{each.listener}://{each.host}:{each.port}" for each in quorum.endpoints.get(row.replica.id, ())
                ]
            found.append(json.dumps(entry))
    return f"[{', '.join(found)}]"


def _print_replication(quorum: QuorumInfo, human_readable: bool) -> None:
    now_ms = current_ms()

    def shown(timestamp_ms: int | None) -> str:
        if timestamp_ms is None:
            return "-1"
        return f"{now_ms - timestamp_ms} ms ago" if human_readable else str(timestamp_ms)

    print_tabbed(
        ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"),
        [
            (
                row.replica.id,
                uuid_text(row.replica.directory_id),
                row.replica.log_end_offset,
                row.lag,
                shown(row.replica.last_fetch),
                shown(row.replica.last_caught_up),
                row.role.capitalize(),
            )
            for row in quorum_rows(quorum)
        ],
    )


def _as_json(cluster_id: str, quorum: QuorumInfo) -> dict[str, Any]:
    def replica(row: Row) -> dict[str, Any]:
        return {
            "id": row.replica.id,
            "directoryId": uuid_text(row.replica.directory_id),
            "isLeader": row.role == LEADER,
            "logEndOffset": row.replica.log_end_offset,
            "lag": row.lag,
            "lastFetch": row.replica.last_fetch,
            "lastCaughtUp": row.replica.last_caught_up,
            "endpoints": [each._asdict() for each in quorum.endpoints.get(row.replica.id, ())],
        }

    rows = quorum_rows(quorum)
    return {
        "clusterId": cluster_id,
        "leader": quorum.leader_id if quorum.leader_id >= 0 else None,
        "leaderEpoch": quorum.leader_epoch,
        "highWatermark": quorum.high_watermark,
        "voters": [replica(row) for row in rows if row.role != OBSERVER],
        "observers": [replica(row) for row in rows if row.role == OBSERVER],
    }
