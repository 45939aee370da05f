"""The `groups` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla groups list --state
  ottla groups describe billing                                        offsets and lag
  ottla groups describe billing --members
  ottla groups reset-offsets billing --topic orders --to-earliest      shows what it would do
  ottla groups reset-offsets billing --topic orders --to-earliest --execute
  ottla groups delete billing
  ottla groups --describe --group billing --bootstrap-server localhost:9092    Kafka's spelling
"""

_HERE = "ottla.cli.groups"
ACTIONS = {
    "list": (f"{_HERE}.list", "list_groups", "Name the groups there are."),
    "describe": (f"{_HERE}.describe", "describe", "Show offsets and lag, members or state of groups."),
    "reset-offsets": (f"{_HERE}.reset_offsets", "reset_offsets", "Change where groups will go on reading."),
    "delete-offsets": (f"{_HERE}.delete_offsets", "delete_offsets", "Forget a group's offsets of topics."),
    "delete": (f"{_HERE}.delete", "delete", "Delete groups and their offsets."),
    "validate-regex": (f"{_HERE}.validate_regex", "validate_regex", "Check a regular expression for subscriptions."),
}


@click.command("groups", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def groups() -> None:
    """List, describe, delete and rewind consumer groups, of the classic and of the new protocol.

    Flags are those of Kafka's kafka-consumer-groups, which may also be spelled in Kafka's way. On a terminal the output is a
    table, in a pipe it is Kafka's lines, with --json it is JSON. `ottla groups ACTION --help` shows the flags of an action.
    """
