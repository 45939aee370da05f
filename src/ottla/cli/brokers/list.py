"""`ottla brokers list`."""

from __future__ import annotations

import click

from ottla.cli.brokers.rows import HEADINGS, broker_json, broker_rows
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_tabbed, print_table, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.health import cluster_state

EXAMPLES = """\b
Examples:
  ottla brokers list
  ottla brokers list --json
"""

PLAIN_HEADINGS = ("BROKER", "STATE", "ENDPOINT", "RACK", "LEADERS", "REPLICAS", "OUT-OF-SYNC")


@click.command("list", epilog=EXAMPLES)
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
