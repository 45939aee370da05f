"""`ottla groups delete`."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import find_groups, group_arguments, named_groups, timeout_option, with_timeout
from ottla.client.admin.groups import delete_consumer_groups

EXAMPLES = """\b
Examples:
  ottla groups delete billing
  ottla groups delete --all-groups --yes          groups without members; reports the others
"""


@click.command("delete", epilog=EXAMPLES)
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
