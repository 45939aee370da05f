"""`ottla groups list`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import timeout_option, with_timeout
from ottla.client.admin import groups as admin

EXAMPLES = """\b
Examples:
  ottla groups list
  ottla groups list --state                       with the state of each
  ottla groups list --state stable,empty --type consumer
  ottla groups list --protocol                    also groups of Kafka Connect and others
"""

STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
TYPES = ("Classic", "Consumer")
GROUP_WIDTH_MIN, GAP, WORD_WIDTH = 15, 10, 20


@click.command("list", epilog=EXAMPLES)
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
def list_groups(
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
