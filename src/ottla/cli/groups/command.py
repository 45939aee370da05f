"""The `groups` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla groups list --state
  ottla groups describe billing                                        offsets and lag
  ottla groups describe billing --members
  ottla groups lag 'billing-*'                                         total lag of each, the largest first
  ottla groups reset-offsets billing --topic orders --to-earliest      shows what it would do
  ottla groups reset-offsets billing --topic orders --to-earliest --execute
  ottla groups delete billing
  ottla groups --describe --group billing --bootstrap-server localhost:9092    Kafka's spelling
"""

_HERE = "ottla.cli.groups"
ACTIONS = {
    "list": (f"{_HERE}.list", "list_groups", "List all groups."),
    "describe": (f"{_HERE}.describe", "describe", "Show offsets and lag, members or state of groups."),
    "lag": (f"{_HERE}.lag", "lag", "Show the total lag of each group, the largest first."),
    "reset-offsets": (f"{_HERE}.reset_offsets", "reset_offsets", "Change the committed offsets of groups."),
    "delete-offsets": (f"{_HERE}.delete_offsets", "delete_offsets", "Delete a group's committed offsets of topics."),
    "delete": (f"{_HERE}.delete", "delete", "Delete groups and their committed offsets."),
    "validate-regex": (f"{_HERE}.validate_regex", "validate_regex", "Check a regular expression for subscriptions."),
}


@click.command("groups", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def groups() -> None:
    """List, describe and delete consumer groups of the classic and the new protocol, and reset their offsets.

    Takes the flags of Kafka's kafka-consumer-groups, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON
    with --json. `ottla groups ACTION --help` shows the flags of an action.
    """
