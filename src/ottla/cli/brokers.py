"""The `brokers` verb: list and describe brokers, and which versions of each API they serve. A broker is shown as a
`BrokerRow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from ottla.cli.common.completion import complete_from_cluster
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.admin.cluster_state import NodeDescription, describe_cluster
from ottla.client.admin.log_dirs import LogDirDescription, describe_log_dirs
from ottla.client.api_versions import ServedApi, describe_api_versions
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState, cluster_state
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import error_name
from ottla.errors.texts import counted, listed

HEADINGS = ("#Broker", "State", "Endpoint", "~Rack", "#Leaders", "#Replicas", "#Out of sync")
ACTIVE, FENCED = "active", "fenced"


class BrokerRow(NamedTuple):
    """One broker with its share of the partitions."""

    node: NodeDescription
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    """Its replicas that are not in the ISR."""

    @property
    def state(self) -> str:
        state = FENCED if self.node.is_fenced else ACTIVE
        return f"{state}, controller" if self.is_controller else state

    @property
    def endpoint(self) -> str:
        return f"{self.node.host}:{self.node.port}"

    @property
    def cells(self) -> tuple[object, ...]:
        return (
            self.node.id,
            self.state,
            self.endpoint,
            self.node.rack or "-",
            self.leaders,
            self.replicas,
            self.out_of_sync,
        )


def broker_rows(state: ClusterState) -> list[BrokerRow]:
    """Every broker, also those that only partitions still name."""
    partitions = [each for topic in state.topics.values() for each in topic.partitions]
    controller = None if state.quorum is None else state.quorum.leader_id
    return [
        BrokerRow(
            node,
            node_id == controller,
            sum(each.leader == node_id for each in partitions),
            sum(node_id in each.replicas for each in partitions),
            sum(node_id in each.replicas and node_id not in each.isr for each in partitions),
        )
        for node_id, node in state.described.nodes.items()
    ]


def broker_json(row: BrokerRow) -> dict[str, Any]:
    return {
        "broker": row.node.id,
        "host": row.node.host,
        "port": row.node.port,
        "rack": row.node.rack,
        "isFenced": row.node.is_fenced,
        "isController": row.is_controller,
        "leaders": row.leaders,
        "replicas": row.replicas,
        "outOfSync": row.out_of_sync,
    }


def complete_brokers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The ids of brokers that begin with `incomplete`."""

    async def ids(cluster: Cluster) -> list[str]:
        return [str(node_id) for node_id in (await describe_cluster(cluster)).nodes]

    return complete_from_cluster(ctx, incomplete, ids)


LIST_EXAMPLES = """\b
Examples:
  ottla brokers list
  ottla brokers list --json
"""

PLAIN_HEADINGS = ("BROKER", "STATE", "ENDPOINT", "RACK", "LEADERS", "REPLICAS", "OUT-OF-SYNC")


@click.command("list", epilog=LIST_EXAMPLES)
@json_option
@plain_option
@wide_option
@cluster_options()
def list_brokers(settings: ClientSettings, as_json: bool, plain: bool) -> None:
    """List the brokers, fenced ones too: those are registered, but down or cut off."""
    state = with_cluster(settings, cluster_state)
    rows = broker_rows(state)
    if state.note is not None:
        warn(state.note)
    if as_json:
        print_json([broker_json(each) for each in rows])
    elif is_for_people(as_json, plain):
        print_table(None, HEADINGS, [each.cells for each in rows])
    else:
        print_tabbed(PLAIN_HEADINGS, [each.cells for each in rows])


DESCRIBE_EXAMPLES = """\b
Examples:
  ottla brokers describe               every broker
  ottla brokers describe 2 3
  ottla brokers describe 2 --json
"""

Directories = Mapping[str, LogDirDescription] | KafkaError
"""The log directories of a broker, or why it does not show them."""


@click.command("describe", epilog=DESCRIBE_EXAMPLES)
@click.argument("brokers", nargs=-1, type=click.IntRange(0), metavar="[BROKERS]...", shell_complete=complete_brokers)
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, brokers: tuple[int, ...], as_json: bool, plain: bool) -> int:
    """Show brokers: state, address, rack, partitions, and log directories with their sizes. BROKERS are ids; default: all.

    A fenced broker cannot be asked for its log directories. The exit code is 1 if another does not answer.
    """
    found = with_cluster(settings, lambda cluster: _ask(cluster, brokers))
    if as_json:
        print_json([{**broker_json(row), **_directories_json(directories)} for row, directories in found])
    else:
        show = _print_table if is_for_people(as_json, plain) else _print_broker_lines
        for row, directories in found:
            show(row, directories)
    return 1 if any(isinstance(each, KafkaError) and not row.node.is_fenced for row, each in found) else 0


async def _ask(cluster: Cluster, wanted: Sequence[int]) -> list[tuple[BrokerRow, Directories]]:
    rows = {each.node.id: each for each in broker_rows(await cluster_state(cluster))}
    for broker in wanted:
        if broker not in rows:
            raise OttlaError(f"broker {broker} is not in the cluster, which has {', '.join(map(str, rows)) or 'none'}")
    chosen = [row for broker, row in rows.items() if not wanted or broker in wanted]
    results = await describe_log_dirs(cluster, [row.node.id for row in chosen if not row.node.is_fenced])
    fenced = KafkaError(-1, "the broker is fenced: it is down or cut off")
    shown: dict[int, Directories] = {**results.values_found, **results.errors}
    return [(row, shown.get(row.node.id, fenced)) for row in chosen]


def _used_bytes(directory: LogDirDescription) -> int:
    return sum(each.size_bytes for each in directory.replicas.values())


def _summary(row: BrokerRow) -> str:
    held = f"holds {counted(row.replicas, 'replica')}, {row.out_of_sync} of them out of sync"
    return f"leads {counted(row.leaders, 'partition')}, {held}"


def _print_table(row: BrokerRow, directories: Directories) -> None:
    details = [f"rack: {row.node.rack or 'none'}", _summary(row)]
    title = f"broker {row.node.id} at {row.endpoint}  ({row.state})"
    if isinstance(directories, KafkaError):
        details.append(f"log directories: {directories}")
        directories = {}
    rows = [
        (
            each.path,
            "offline" if each.error is not None else "cordoned" if each.is_cordoned else "online",
            len(each.replicas),
            f"{_used_bytes(each):,}",
            "-" if each.usable_bytes is None else f"{each.usable_bytes:,}",
        )
        for each in directories.values()
    ]
    print_table(title, ("Log directory", "State", "#Replicas", "#Bytes", "#Free"), rows, details)


def _print_broker_lines(row: BrokerRow, directories: Directories) -> None:
    say(
        f"Broker: {row.node.id}",
        f"State: {row.state}",
        f"Endpoint: {row.endpoint}",
        f"Rack: {row.node.rack or '-'}",
        f"Leaders: {row.leaders}",
        f"Replicas: {row.replicas}",
        f"OutOfSync: {row.out_of_sync}",
    )
    if isinstance(directories, KafkaError):
        say("", f"LogDirs: {directories}")
        return
    for each in directories.values():
        state = error_name(each.error.code) if each.error is not None else "cordoned" if each.is_cordoned else "online"
        say("", f"LogDir: {each.path}", f"State: {state}", f"Replicas: {len(each.replicas)}", f"Bytes: {_used_bytes(each)}")


def _directories_json(directories: Directories) -> dict[str, Any]:
    if isinstance(directories, KafkaError):
        return {"logDirs": None, "error": str(directories)}
    return {
        "logDirs": [
            {
                "path": each.path,
                "error": None if each.error is None else error_name(each.error.code),
                "isCordoned": each.is_cordoned,
                "replicas": len(each.replicas),
                "bytes": _used_bytes(each),
                "totalBytes": each.total_bytes,
                "usableBytes": each.usable_bytes,
            }
            for each in directories.values()
        ],
        "error": None,
    }


API_VERSIONS_EXAMPLES = """\b
Examples:
  ottla brokers api-versions
  ottla brokers api-versions 2 --json
"""


class _Answer(NamedTuple):
    """What one broker serves, or why it did not say so."""

    node: NodeDescription
    apis: list[ServedApi]
    error: KafkaError | None

    @property
    def name(self) -> str:
        """As Kafka's tool prints a broker."""
        node = self.node
        rack = "null" if node.rack is None else node.rack
        return f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: {str(node.is_fenced).lower()})"


@click.command("api-versions", epilog=API_VERSIONS_EXAMPLES)
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...", shell_complete=complete_brokers)
@json_option
@plain_option
@wide_option
@cluster_options()
def api_versions(settings: ClientSettings, ids: tuple[int, ...], as_json: bool, plain: bool) -> int:
    """Show which versions of each API the brokers serve, and the newest that Ottla's clients use with them.

    The output is a table on a terminal, the lines of kafka-broker-api-versions in a pipe, JSON with --json. The exit code
    is 1 if a broker did not answer.
    """

    async def ask(cluster: Cluster) -> list[_Answer]:
        found = await describe_api_versions(cluster, ids)
        return [
            _Answer(node, *((list(apis), None) if not isinstance(apis, KafkaError) else ([], apis))) for node, apis in found
        ]

    answers = with_cluster(settings, ask)
    if as_json:
        print_json([_answer_json(each) for each in answers])
    elif is_for_people(as_json, plain):
        _print_tables(answers)
    else:
        for each in answers:
            _print_api_lines(each)
    return 1 if any(each.error is not None for each in answers) else 0


def _answer_json(answer: _Answer) -> dict[str, Any]:
    node = answer.node
    shown: dict[str, Any] = {"broker": node.id, "host": node.host, "port": node.port, "rack": node.rack}
    shown["isFenced"] = node.is_fenced
    if answer.error is not None:
        return shown | {"error": str(answer.error)}
    names = ("key", "name", "oldest", "newest", "usable")
    return shown | {"apis": [dict(zip(names, api, strict=True)) for api in answer.apis if api.newest is not None]}


def _print_api_lines(answer: _Answer) -> None:
    if answer.error is not None:
        say(f"{answer.name} -> ERROR: {answer.error}")
        return
    say(f"{answer.name} -> (")
    for number, api in enumerate(answer.apis, 1):
        say("", _text(api) + ("," if number < len(answer.apis) else ""))
    say(")")


def _text(api: ServedApi) -> str:
    """`Fetch(1): 4 to 18 [usable: 18]`."""
    start = f"{api.name or 'UNKNOWN'}({api.key}): "
    if api.newest is None or api.oldest is None:
        return f"{start}UNSUPPORTED"
    if not api.name:
        return f"{start}{_versions(api)}"
    if api.usable is not None:
        return f"{start}{_versions(api)} [usable: {api.usable}]"
    return f"{start}{_versions(api)} [unusable: node too {'old' if api.is_older else 'new'}]"


def _versions(api: ServedApi) -> str:
    return f"{api.oldest} to {api.newest}" if api.newest != api.oldest else f"{api.newest}"


def _print_tables(answers: list[_Answer]) -> None:
    """One table for all brokers that serve the same."""
    groups: dict[tuple[ServedApi, ...], list[_Answer]] = {}
    for each in answers:
        if each.error is not None:
            warn(f"broker {each.node.id} at {each.node.host}:{each.node.port} did not answer: {explain(each.error)}")
        else:
            groups.setdefault(tuple(each.apis), []).append(each)
    for apis, alike in groups.items():
        names = [f"{each.node.id}{f' ({FENCED})' if each.node.is_fenced else ''}" for each in alike]
        rows = [
            (api.name or "unknown", api.key, "-" if api.newest is None else _versions(api), _range_used(api)) for api in apis
        ]
        title = f"APIs of broker {names[0]}" if len(names) == 1 else f"APIs of brokers {listed(names, 20)}"
        print_table(title, ("API", "#Key", "Versions", "Ottla's clients use"), rows)


def _range_used(api: ServedApi) -> str:
    if api.newest is None:
        return "not served"
    return "-" if api.usable is None else str(api.usable)


EXAMPLES = """\b
Examples:
  ottla brokers list
  ottla brokers describe 2
  ottla brokers api-versions
"""

ACTIONS = {
    "list": (list_brokers, "List brokers: states, addresses, racks, how many partitions each leads."),
    "describe": (describe, "Show brokers with their log directories."),
    "api-versions": (api_versions, "Show which versions of each API brokers serve."),
}


@click.command("brokers", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def brokers() -> None:
    """List and describe the brokers of a cluster.

    The output is a table on a terminal, lines in a pipe, JSON with --json. `ottla configs` shows their settings.
    """
