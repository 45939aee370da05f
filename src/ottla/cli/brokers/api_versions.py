"""`ottla brokers api-versions`: which versions of each API brokers serve. Takes the flags of kafka-broker-api-versions."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from ottla.cli.brokers.rows import FENCED, complete_brokers
from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.cluster_state import NodeDescription
from ottla.client.api_versions import ServedApi, describe_api_versions
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.errors.texts import listed

EXAMPLES = """\b
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


@click.command("api-versions", epilog=EXAMPLES)
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
        print_json([_as_json(each) for each in answers])
    elif is_for_people(as_json, plain):
        _print_tables(answers)
    else:
        for each in answers:
            _print_lines(each)
    return 1 if any(each.error is not None for each in answers) else 0


def _as_json(answer: _Answer) -> dict[str, Any]:
    node = answer.node
    shown: dict[str, Any] = {"broker": node.id, "host": node.host, "port": node.port, "rack": node.rack}
    shown["isFenced"] = node.is_fenced
    if answer.error is not None:
        return shown | {"error": str(answer.error)}
    names = ("key", "name", "oldest", "newest", "usable")
    return shown | {"apis": [dict(zip(names, api, strict=True)) for api in answer.apis if api.newest is not None]}


def _print_lines(answer: _Answer) -> None:
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
        rows = [(api.name or "unknown", api.key, "-" if api.newest is None else _versions(api), _used(api)) for api in apis]
        title = f"APIs of broker {names[0]}" if len(names) == 1 else f"APIs of brokers {listed(names, 20)}"
        print_table(title, ("API", "#Key", "Versions", "Ottla's clients use"), rows)


def _used(api: ServedApi) -> str:
    if api.newest is None:
        return "not served"
    return "-" if api.usable is None else str(api.usable)
