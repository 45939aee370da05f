"""The `reassign` verb: its actions, each imported when used."""

import click

from ottla.cli.common.options import ZOOKEEPER, retired
from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla reassign generate --brokers 1,2,3,4 > plan.json      spread all topics over these brokers, with few moves
  ottla reassign execute plan.json --throttle 20000000 --wait
  ottla reassign verify plan.json                            how far it is; removes the throttles when all is done
  ottla reassign cancel plan.json                            back to where the replicas were
  ottla reassign --execute --reassignment-json-file plan.json --bootstrap-server localhost:9092    Kafka's spelling
"""

_HERE = "ottla.cli.reassign"
ACTIONS = {
    "generate": (f"{_HERE}.generate", "generate", "Propose which brokers hold which partitions, as a plan in JSON."),
    "execute": (f"{_HERE}.execute", "execute", "Start moving partitions as a plan says."),
    "verify": (f"{_HERE}.verify", "verify", "Show how far a plan is; remove the throttles when it is done."),
    "cancel": (f"{_HERE}.cancel", "cancel", "Stop moving the partitions of a plan."),
    "list": (f"{_HERE}.list", "list_reassignments", "List the partitions that are being moved now."),
}


@click.command("reassign", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def reassign() -> None:
    """Move partitions to other brokers or log directories.

    A plan is a JSON file in the form of Kafka's kafka-reassign-partitions: each tool takes the files of the other. Takes the
    flags of that tool, too.
    """
