"""`ottla groups delete`."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import find_groups, group_arguments, named_groups, timeout_option, with_timeout
from ottla.cli.groups.views import no_such_group
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

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
    results = with_cluster(settings, lambda cluster: _delete(cluster, chosen))
    deleted = [group_id for group_id, error in results.items() if error is None]
    failed = {group_id: error for group_id, error in results.items() if error is not None}
    for error in failed.values():
        warn(str(error))
    if as_json:
        print_json({"deleted": deleted, "failed": {group_id: str(error) for group_id, error in failed.items()}})
    elif not failed:
        say(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
    elif deleted:
        say(f"These consumer groups were deleted successfully: {_quoted(deleted)}")
    return 1 if failed else 0


def _quoted(ids: list[str]) -> str:
    return ", ".join(f"'{group_id}'" for group_id in ids)


async def _delete(cluster: Cluster, ids: list[str]) -> dict[str, KafkaError | None]:
    async def ask(broker_id: int, wanted: list[str]) -> dict[str, KafkaError | None]:
        request = DeleteGroupsRequest(groups_names=wanted)
        response: DeleteGroupsResponse = await (await cluster.link_to(broker_id)).request(request)
        return {each.group_id: _error(each.group_id, each.error_code) for each in response.results}

    return await by_coordinator(cluster, CoordinatorKind.GROUP, ids, ask)


def _error(group_id: str, code: int) -> KafkaError | None:
    if not code:
        return None
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return no_such_group(group_id)
    text = None
    if code == ErrorCode.NON_EMPTY_GROUP:
        text = f"it has members; stop them first (`ottla groups describe {group_id} --members` shows them)"
    return refusal(code, f"group {group_id} was not deleted", text)
