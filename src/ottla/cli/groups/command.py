"""The `groups` verb: the list of groups, the deletion of groups and offsets, and the arguments that name groups and
partitions.

`describe`, `lag` and `reset-offsets` are imported when used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_from_cluster, complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import ZOOKEEPER, cluster_options, json_option, plain_option, retired, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_padded, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.admin import groups as admin
from ottla.client.admin.groups import delete_consumer_groups, list_groups
from ottla.client.cluster import Cluster
from ottla.client.group_resets import delete_offsets as delete_committed
from ottla.client.group_resets import find_groups
from ottla.errors import OttlaError

F = TypeVar("F", bound=Callable[..., Any])


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The groups whose ids begin with `incomplete`."""

    async def ids(cluster: Cluster) -> list[str]:
        return [each.group_id for each in await list_groups(cluster)]

    return complete_from_cluster(ctx, incomplete, ids)


def group_arguments(function: F) -> F:
    """Add the argument GROUPS, and Kafka's `--group` and `--all-groups`."""
    function = click.option("--all-groups", is_flag=True, help="All consumer groups.")(function)
    function = click.option(
        "--group",
        "flagged",
        multiple=True,
        metavar="ID",
        shell_complete=complete_groups,
        help="Kafka's spelling of GROUPS. Repeatable.",
    )(function)
    return click.argument("named", nargs=-1, metavar="[GROUPS]...", shell_complete=complete_groups)(function)


timeout_option = click.option(
    "--timeout", "timeout_ms", type=click.IntRange(1), metavar="MS", help="How long the cluster may take.  [default: 60000]"
)


def with_timeout(settings: ClientSettings, timeout_ms: int | None) -> ClientSettings:
    """Settings with the time limit of `--timeout`."""
    if timeout_ms is None:
        return settings
    request_ms = min(timeout_ms, settings.client.request_timeout_ms)  # a request may not take longer than the whole
    return settings.changed({"default.api.timeout.ms": timeout_ms, "request.timeout.ms": request_ms})


def named_groups(named: Sequence[str], flagged: Sequence[str], all_groups: bool, action: str) -> list[str] | None:
    """The groups that the user named, without duplicates; None for all."""
    ids = list(dict.fromkeys((*named, *flagged)))
    if all_groups and ids:
        raise click.UsageError("name groups or give --all-groups, not both")
    if not ids and not all_groups:
        raise click.UsageError(f"name the group, for example: ottla groups {action} billing (or give --all-groups)")
    return ids or None


def parse_topics(texts: Sequence[str]) -> dict[str, list[int] | None]:
    """Parse Kafka's `orders` and `orders:0,1`: partitions by topic, None for all partitions."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            found[topic] = None
            continue
        parts = numbers.split(",")
        if not topic or not all(part.isascii() and part.isdigit() for part in parts):
            raise click.UsageError(f"--topic takes a topic, or a topic and partitions such as orders:0,1, not {text!r}")
        if found.get(topic, []) is not None:
            found[topic] = [*(found.get(topic) or []), *map(int, parts)]
    return found


LIST_EXAMPLES = """\b
Examples:
  ottla groups list
  ottla groups list --state                       with the state of each
  ottla groups list --state stable,empty --type consumer
  ottla groups list --protocol                    also groups of Kafka Connect and others
"""

STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
TYPES = ("Classic", "Consumer")
GROUP_WIDTH_MIN, GAP, WORD_WIDTH = 15, 10, 20


@click.command("list", epilog=LIST_EXAMPLES)
@click.option("--state", "states", is_flag=False, flag_value="", metavar="[STATES]", help="Show states; only these, if given.")
@click.option("--type", "types", is_flag=False, flag_value="", metavar="[TYPES]", help="Show types; only these, if given.")
@click.option(
    "--protocol",
    "protocols",
    is_flag=False,
    flag_value="",
    metavar="[NAMES]",
    help="Show protocols, and groups of any; only these, if given.",
)
@timeout_option
@json_option
@plain_option
@wide_option
@cluster_options()
def list_command(
    settings: ClientSettings,
    states: str | None,
    types: str | None,
    protocols: str | None,
    timeout_ms: int | None,
    as_json: bool,
    plain: bool,
) -> int:
    """List all consumer groups, one a line. The exit code is 1 if a broker does not answer: its groups are missing."""
    chosen_states = parse_words(states, STATES, "--state")
    chosen_types = parse_words(types, TYPES, "--type")
    wanted = [name.strip() for name in protocols.split(",")] if protocols else []
    found, errors = with_cluster(
        with_timeout(settings, timeout_ms),
        lambda cluster: admin.list_reachable_groups(cluster, states=chosen_states, types=chosen_types),
    )
    for broker, error in errors.items():
        warn(f"the groups that broker {broker} coordinates are left out: {explain(error)}")
    if protocols is None:
        found = [each for each in found if each.is_of_consumers]
    elif wanted:
        found = [each for each in found if each.protocol in wanted]
    if as_json:
        print_json(
            [
                {
                    "group": each.group_id,
                    "type": each.type,
                    "state": each.state,
                    "protocol": each.protocol,
                    "coordinator": each.coordinator,
                }
                for each in found
            ]
        )
    elif is_for_people(as_json, plain):
        rows = [(each.group_id, each.type, each.state, each.protocol, each.coordinator) for each in found]
        print_table(None, ("Group", "Type", "State", "Protocol", "#Coordinator"), rows)
    elif states is None and types is None and protocols is None:
        for each in found:
            say(each.group_id)
    else:
        _print_lines(found, types is not None, states is not None, protocols is not None)
    return 1 if errors else 0


def parse_words(text: str | None, known: Sequence[str], flag: str) -> list[str]:
    """Parse comma-separated words, in any case, into the protocol's spelling."""
    spelled = {name.lower(): name for name in known}
    found = []
    for word in text.split(",") if text else ():
        plain = word.strip().lower().replace("_", "").replace("-", "")
        if plain not in spelled:
            raise click.UsageError(f"{flag} does not know {word.strip()!r}: choose from {', '.join(known)}")
        found.append(spelled[plain])
    return found


def _print_lines(found: Sequence[admin.GroupListing], with_type: bool, with_state: bool, with_protocol: bool) -> None:
    """Kafka's own lines, with the requested columns."""
    columns = (
        (with_type, "TYPE", [each.type for each in found]),
        (with_protocol, "PROTOCOL", [each.protocol for each in found]),
        (with_state, "STATE", [each.state for each in found]),
    )
    shown = [(heading, cells) for is_shown, heading, cells in columns if is_shown]
    group_width = max([GROUP_WIDTH_MIN, *(len(each.group_id) for each in found)]) + GAP
    rows = list(zip([each.group_id for each in found], *(cells for _, cells in shown), strict=True))
    print_padded(("GROUP", *(heading for heading, _ in shown)), rows, (group_width, *(WORD_WIDTH for _ in shown)))


DELETE_EXAMPLES = """\b
Examples:
  ottla groups delete billing
  ottla groups delete --all-groups --yes          groups without members; reports the others
"""


@click.command("delete", epilog=DELETE_EXAMPLES)
@group_arguments
@timeout_option
@yes_option
@json_option
@cluster_options()
def delete(
    settings: ClientSettings,
    named: tuple[str, ...],
    flagged: tuple[str, ...],
    all_groups: bool,
    timeout_ms: int | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete groups that have no members, and their committed offsets. Asks for confirmation on a terminal."""
    ids = named_groups(named, flagged, all_groups, "delete")
    settings = with_timeout(settings, timeout_ms)
    chosen = with_cluster(settings, lambda cluster: find_groups(cluster, ids))
    if chosen:
        confirm(f"Delete {', '.join(chosen)} and all offsets of {'it' if len(chosen) == 1 else 'them'}?", yes)
    results = with_cluster(settings, lambda cluster: delete_consumer_groups(cluster, sorted(chosen)))
    failed = results.errors
    deleted = list(results.values_found)
    for error in failed.values():
        warn(explain(error))
    if as_json:
        print_json({"deleted": deleted, "failed": {group_id: explain(error) for group_id, error in failed.items()}})
    elif not failed:
        say(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
    elif deleted:
        say(f"These consumer groups were deleted successfully: {_quoted(deleted)}")
    return 1 if failed else 0


def _quoted(ids: list[str]) -> str:
    return ", ".join(f"'{group_id}'" for group_id in ids)


DELETE_OFFSETS_EXAMPLES = """\b
Examples:
  ottla groups delete-offsets billing --topic orders
  ottla groups delete-offsets billing --topic orders:0,1 --topic prices
"""


@click.command("delete-offsets", epilog=DELETE_OFFSETS_EXAMPLES)
@click.argument("name", required=False, metavar="[GROUP]", shell_complete=complete_groups)
@click.option("--group", metavar="ID", shell_complete=complete_groups, help="Kafka's spelling of GROUP.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    shell_complete=complete_topics,
    help="The topic whose offsets to delete; partitions after a colon. Repeatable.",
)
@timeout_option
@yes_option
@json_option
@cluster_options()
def delete_offsets(
    settings: ClientSettings,
    name: str | None,
    group: str | None,
    topics: tuple[str, ...],
    timeout_ms: int | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete a group's committed offsets of topics that it is not reading. Asks for confirmation on a terminal."""
    if (name is None) == (group is None) or not topics:
        raise click.UsageError("name one group and the topics, for example: ottla groups delete-offsets billing --topic orders")
    group_id = name or group or ""
    wanted = parse_topics(topics)
    confirm(f"Delete the offsets of group {group_id} for {', '.join(topics)}?", yes)
    results = with_cluster(with_timeout(settings, timeout_ms), lambda cluster: delete_committed(cluster, group_id, wanted))
    failed = any(error is not None for error in results.values())
    if as_json:
        print_json(
            [
                {"topic": each.topic, "partition": each.partition, **({} if error is None else {"error": explain(error)})}
                for each, error in results.items()
            ]
        )
        return 1 if failed else 0
    if not failed:
        say(f"Request succeeded for deleting offsets from group {group_id}.")
    rows = [
        (
            each.topic,
            "-" if each.partition < 0 else each.partition,
            "Successful" if error is None else f"Error: {explain(error)}",
        )
        for each, error in results.items()
    ]
    say()
    print_padded(("TOPIC", "PARTITION", "STATUS"), rows, (15, 10, 0))
    return 1 if failed else 0


@click.command("validate-regex")
@click.argument("regex")
@click.option("-b", "--bootstrap-server", hidden=True, expose_value=False)
def validate_regex(regex: str) -> int:
    """Check REGEX as brokers do when consumers of the new protocol subscribe with it: the syntax is RE2. Asks no broker."""
    try:
        import re2
    except ImportError:
        raise OttlaError("this needs the package google-re2: pip install google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options=options)
    except re2.error as error:
        said = error.args[0]
        say(f"The regular expression `{regex}` is invalid: {said.decode() if isinstance(said, bytes) else said}.")
        return 1
    say(f"The regular expression `{regex}` is valid.")
    return 0


EXAMPLES = """\b
Examples:
  ottla groups list --state
  ottla groups describe billing                                        offsets and lag
  ottla groups describe billing --members
  ottla groups lag 'billing-*'                                         lag of each, the largest first
  ottla groups lag --watch                                             with rates, time to catch up and status
  ottla groups reset-offsets billing --topic orders --to-earliest      shows what it would do
  ottla groups reset-offsets billing --topic orders --to-earliest --execute
  ottla groups delete billing
  ottla groups --describe --group billing --bootstrap-server localhost:9092    Kafka's spelling
"""

ACTIONS = {
    "list": (list_command, "List all groups."),
    "describe": ("ottla.cli.groups.describe", "describe", "Show offsets and lag, members or state of groups."),
    "lag": ("ottla.cli.groups.lag", "lag", "Show the lag of each group, in records and seconds; watch it."),
    "reset-offsets": ("ottla.cli.groups.reset_offsets", "reset_offsets", "Change the committed offsets of groups."),
    "delete-offsets": (delete_offsets, "Delete a group's committed offsets of topics."),
    "delete": (delete, "Delete groups and their committed offsets."),
    "validate-regex": (validate_regex, "Check a regular expression for subscriptions."),
}


@click.command("groups", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def groups() -> None:
    """List, describe and delete consumer groups of the classic and the new protocol, and reset their offsets.

    Takes the flags of Kafka's kafka-consumer-groups, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON
    with --json. `ottla groups ACTION --help` shows the flags of an action.
    """
