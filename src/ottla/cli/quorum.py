"""The `quorum` verb: shows the metadata quorum, makes observers voters, takes voters' votes.

The lines for pipes are those of kafka-metadata-quorum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from ottla.cli.common.completion import complete_from_cluster
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_tabbed, print_table, print_title, say, warn
from ottla.cli.common.settings import ClientSettings, read_properties
from ottla.cli.common.spelling import Actions
from ottla.cli.common.times import current_ms
from ottla.client.admin.cluster_state import describe_cluster, describe_features
from ottla.client.admin.quorum import (
    QuorumInfo,
    QuorumReplica,
    VoterEndpoint,
    add_raft_voter,
    describe_metadata_quorum,
    remove_raft_voter,
)
from ottla.client.cluster import Cluster
from ottla.client.health import quorum_problems
from ottla.errors import OttlaError
from ottla.ids import ZERO_UUID, Uuid, uuid_parse, uuid_text
from ottla.log.directories.meta_properties import read_meta_properties

LEADER, FOLLOWER, OBSERVER = "leader", "follower", "observer"


class Row(NamedTuple):
    """One replica."""

    replica: QuorumReplica
    role: str
    lag: int
    """Records behind the leader."""
    endpoints: str


def quorum_rows(quorum: QuorumInfo) -> list[Row]:
    """The leader, then the other voters, then the observers."""
    end = next((each.log_end_offset for each in quorum.voters if each.id == quorum.leader_id), quorum.high_watermark)
    followers = [each for each in quorum.voters if each.id != quorum.leader_id]
    leaders = [each for each in quorum.voters if each.id == quorum.leader_id]
    roles = [(LEADER, leaders), (FOLLOWER, followers), (OBSERVER, list(quorum.observers))]
    return [
        Row(
            each,
            role,
            max(0, end - each.log_end_offset),
            ", ".join(f"{one.host}:{one.port}" for one in quorum.endpoints.get(each.id, ())),
        )
        for role, replicas in roles
        for each in replicas
    ]


def directory_of(replicas: tuple[QuorumReplica, ...], node_id: int, kind: str, given: str | None, remedy: str) -> Uuid:
    """The directory id of a replica: the one that was given, else that of the only `kind` with this node id."""
    if given is not None:
        return uuid_parse(given)
    found = [each.directory_id for each in replicas if each.id == node_id]
    if not found:
        there = ", ".join(str(each.id) for each in replicas) or "none"
        raise OttlaError(f"node {node_id} is not among the {kind}s of the quorum, which are {there}. {remedy}")
    if len(found) > 1:
        ids = " and ".join(map(uuid_text, found))
        raise OttlaError(f"node {node_id} is among the {kind}s with the directories {ids}: choose one with --directory-id")
    if found[0] == ZERO_UUID:
        raise OttlaError(
            f"node {node_id} has no directory id: the voters are fixed by controller.quorum.voters (kraft.version 0)"
        )
    return found[0]


def check_may_join(quorum: QuorumInfo, kraft_version: int, node_id: int, given: str | None) -> None:
    """Raise if the voters of this quorum cannot change, or if the node is one of them. `given`: its directory id, if named."""
    if kraft_version == 0 and any(each.directory_id == ZERO_UUID for each in quorum.voters):
        raise OttlaError(
            "the voters of this quorum are fixed by controller.quorum.voters (kraft.version 0): only quorums formatted with "
            "--standalone or --initial-controllers can change their voters. Raise kraft.version first, with "
            "`ottla features upgrade --feature kraft.version=1`"
        )
    voting = [each.directory_id for each in quorum.voters if each.id == node_id]
    waiting = any(each.id == node_id for each in quorum.observers)
    if voting and (not waiting if given is None else uuid_parse(given) in voting):
        raise OttlaError(f"node {node_id} is a voter already: `ottla quorum describe` shows the voters")


def _complete(pick: Callable[[QuorumInfo], tuple[QuorumReplica, ...]]) -> Callable[..., list[str]]:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        async def ids(cluster: Cluster) -> list[str]:
            return [str(each.id) for each in pick(await describe_metadata_quorum(cluster))]

        return complete_from_cluster(ctx, incomplete, ids)

    return complete


complete_voters = _complete(lambda quorum: quorum.voters)
complete_observers = _complete(lambda quorum: quorum.observers)


DESCRIBE_EXAMPLES = """\b
Examples:
  ottla quorum describe
  ottla quorum describe --replication        in a pipe: one line for each replica, as kafka-metadata-quorum prints them
  ottla quorum describe --json
  ottla quorum describe --bootstrap-controller controller-1:9093
"""

_STATUS_WIDTH = 24


@click.command("describe", epilog=DESCRIBE_EXAMPLES)
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
    wrong = [problem.text for problem in quorum_problems(quorum)]
    if len(quorum.voters) % 2 == 0:
        wrong.append(
            f"{len(quorum.voters)} voters survive no more failures than {len(quorum.voters) - 1}: prefer an odd number"
        )
    if wrong:
        print_title("What is wrong", *wrong)


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


ADD_EXAMPLES = """\b
Examples:
  ottla quorum add 4 --endpoint controller-4:9093
  ottla quorum add --server-config server-4.properties      id, directory and listeners from the controller's own files
  ottla quorum add 4 --endpoint CONTROLLER://c4:9093 --directory-id 2oZZbdtPRUOUe6CnB3WtcA
"""

DEFAULT_LISTENER = "CONTROLLER"
_ENDPOINT = re.compile(r"(?:(?P<listener>[^:/]+)://)?\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d+)")


@click.command("add", epilog=ADD_EXAMPLES)
@click.argument("node", required=False, type=click.IntRange(0), shell_complete=complete_observers)
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="[NAME://]HOST:PORT",
    help=f"Where the controller listens. Repeatable. NAME is its listener.  [default: {DEFAULT_LISTENER}]",
)
@click.option("--directory-id", metavar="ID", help="The id of its metadata directory.  [default: that of the observer NODE]")
@click.option(
    "--server-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server.properties of the controller, on its own machine: takes the place of the other flags.",
)
@cluster_options(takes_controllers=True)
def add(
    settings: ClientSettings,
    node: int | None,
    endpoints: tuple[str, ...],
    directory_id: str | None,
    server_config: Path | None,
) -> None:
    """Add a controller to the voters of the metadata quorum.

    NODE is the id of a controller that runs and follows as an observer: `ottla quorum describe` shows it. Add one at a time.
    """
    if server_config is not None:
        if node is not None or endpoints or directory_id is not None:
            raise click.UsageError("--server-config names the node, its directory and its endpoints: give it alone")
        node, directory_id, listeners = _from_files(server_config)
    else:
        if node is None or not endpoints:
            raise click.UsageError("name the controller and where it listens: ottla quorum add 4 --endpoint controller-4:9093")
        listeners = [parse_endpoint(each) for each in endpoints]
    node_id, given = node, directory_id

    async def work(cluster: Cluster) -> str:
        remedy = "Start it first, with process.roles=controller and the quorum's controller.quorum.bootstrap.servers"
        quorum = await describe_metadata_quorum(cluster)
        level = (await describe_features(cluster)).finalized.get("kraft.version")
        check_may_join(quorum, 0 if level is None else level.highest, node_id, given)
        directory = directory_of(quorum.observers, node_id, "observer", given, remedy)
        await add_raft_voter(cluster, node_id, directory, listeners)
        return uuid_text(directory)

    directory = with_cluster(settings, work)
    where = ", ".join(f"{each.host}:{each.port}" for each in listeners)
    say(f"Added controller {node_id} with directory id {directory} and endpoints {where}.")


def parse_endpoint(text: str) -> VoterEndpoint:
    """`host:port`, `NAME://host:port`, with IPv6 hosts in brackets."""
    match = _ENDPOINT.fullmatch(text.strip())
    if match is None or not 1 <= int(match["port"]) <= 65535:
        raise click.UsageError(f"--endpoint takes HOST:PORT or NAME://HOST:PORT, not {text!r}")
    return VoterEndpoint(match["listener"] or DEFAULT_LISTENER, match["host"], int(match["port"]))


def _from_files(path: Path) -> tuple[int, str, list[VoterEndpoint]]:
    """The node's id, its directory's id and its listeners, from its server.properties and its meta.properties."""
    from ottla.config.broker import BrokerConfig
    from ottla.env.real.world import real_world

    config = BrokerConfig.from_settings(read_properties(str(path)))
    if not config.is_controller:
        raise click.UsageError(f"{path}: process.roles has no controller")
    directory = config.log.metadata_log_dir
    with real_world() as world:
        meta = read_meta_properties(world.disk, directory)
    if meta is None or meta.directory_id is None:
        raise click.UsageError(f"{directory} has no directory id: format it with `ottla storage format`")
    listeners = [VoterEndpoint(each.name, each.host, each.port) for each in config.advertised_controller_listeners]
    return config.node_id, uuid_text(meta.directory_id), listeners


REMOVE_EXAMPLES = """\b
Examples:
  ottla quorum remove 1
  ottla quorum remove 1 --directory-id 2oZZbdtPRUOUe6CnB3WtcA      one of two voters with the same id
  ottla quorum remove-controller --controller-id 1 --controller-directory-id …    Kafka's spelling
"""


@click.command("remove", epilog=REMOVE_EXAMPLES)
@click.argument("node", required=False, type=click.IntRange(0), shell_complete=complete_voters)
@click.option("--controller-id", "--id", "flagged", type=click.IntRange(0), metavar="NODE", help="Kafka's spelling of NODE.")
@click.option(
    "--directory-id",
    "--controller-directory-id",
    "directory_id",
    metavar="ID",
    help="The id of its metadata directory.  [default: that of the voter NODE]",
)
@yes_option
@cluster_options(takes_controllers=True)
def remove(settings: ClientSettings, node: int | None, flagged: int | None, directory_id: str | None, yes: bool) -> None:
    """Remove a controller from the voters of the metadata quorum. If it runs, it goes on as an observer: stop it afterwards."""
    node_id = flagged if node is None else node
    if node_id is None:
        raise click.UsageError("name the controller, for example: ottla quorum remove 1")

    async def find(cluster: Cluster) -> Uuid:
        voters = () if directory_id is not None else (await describe_metadata_quorum(cluster)).voters
        return directory_of(voters, node_id, "voter", directory_id, "`ottla quorum describe` shows them")

    directory = with_cluster(settings, find)
    warn(
        f"once controller {node_id} is stopped, Apache Kafka nodes whose controller.quorum.bootstrap.servers names only this "
        "controller find no other: give them several first. Ottla's nodes also ask the voters that their metadata names"
    )
    confirm(f"Remove controller {node_id} with directory id {uuid_text(directory)} from the voters?", yes)
    with_cluster(settings, lambda cluster: remove_raft_voter(cluster, node_id, directory))
    say(f"Removed controller {node_id} with directory id {uuid_text(directory)}.")


EXAMPLES = """\b
Examples:
  ottla quorum describe
  ottla quorum add 4 --endpoint controller-4:9093
  ottla quorum remove 1
  ottla quorum --bootstrap-server localhost:9092 describe --replication    Kafka's spelling
"""

ACTIONS = {
    "describe": (describe, "Show leader, voters and observers, and how far each has got."),
    "add": (add, "Add a controller to the voters."),
    "remove": (remove, "Remove a controller from the voters."),
}
ALIASES = {"add-controller": "add", "remove-controller": "remove"}


@click.command("quorum", cls=Actions, actions=ACTIONS, aliases=ALIASES, epilog=EXAMPLES)
def quorum() -> None:
    """Show the metadata quorum, and change its voters.

    Takes the actions of Kafka's kafka-metadata-quorum, too. To add and remove voters the cluster needs kraft.version 1: its
    controllers were formatted with --standalone or --initial-controllers.
    """
