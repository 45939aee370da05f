"""`ottla groups lag`: the total lag of each group, the largest first."""

from __future__ import annotations

from typing import NamedTuple

import click

from ottla.cli.common.offsets import LATEST
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.command import complete_groups, timeout_option, with_timeout
from ottla.cli.groups.offsets import committed_offsets, find_offsets
from ottla.cli.topics.choosing import match
from ottla.client.admin.groups import list_consumer_groups
from ottla.client.cluster import Cluster

EXAMPLES = """\b
Examples:
  ottla groups lag
  ottla groups lag 'billing-*'                    a name, a regular expression or a glob
  ottla groups lag --json | jq '.[] | select(.lag > 1000).group'
"""

HEADINGS = ("GROUP", "STATE", "TOPICS", "PARTITIONS", "LAG")


class GroupLag(NamedTuple):
    """A group and the sum of the lag of its partitions."""

    group: str
    state: str
    topics: int
    partitions: int
    lag: int


@click.command("lag", epilog=EXAMPLES)
@click.argument("patterns", nargs=-1, metavar="[GROUPS]...", shell_complete=complete_groups)
@timeout_option
@json_option
@plain_option
@wide_option
@cluster_options()
def lag(settings: ClientSettings, patterns: tuple[str, ...], timeout_ms: int | None, as_json: bool, plain: bool) -> None:
    """Show the total lag of consumer groups, the largest first.

    GROUPS are ids, regular expressions or globs; the default is all consumer groups. Lag is the number of offsets between the
    committed offset and the log end offset, summed over the partitions that a group has committed.
    """
    found = with_cluster(with_timeout(settings, timeout_ms), lambda cluster: _lags(cluster, patterns))
    if as_json:
        print_json([each._asdict() for each in found])
    elif is_for_people(as_json, plain):
        print_table(
            None, ("Group", "State", "#Topics", "#Partitions", "#Lag"), [(*each[:4], f"{each.lag:,}") for each in found]
        )
    else:
        print_padded(HEADINGS, found, (15, 20, 10, 10, 0))


async def _lags(cluster: Cluster, patterns: tuple[str, ...]) -> list[GroupLag]:
    listed = {each.group_id: each for each in await list_consumer_groups(cluster)}
    chosen = sorted(listed)
    if patterns:
        matches = {word: match(listed, word) for word in patterns}
        for word, ids in matches.items():
            if not ids:
                warn(f"no group matches {word!r}: `ottla groups list` shows all groups")
        chosen = sorted({group_id for ids in matches.values() for group_id in ids})
    offsets = await committed_offsets(cluster, chosen)
    ends = await find_offsets(cluster, {each for found in offsets.values() for each in found}, LATEST)
    rows = []
    for group_id, found in offsets.items():
        lags = [max(0, end.offset - one.offset) for each, one in found.items() if (end := ends.get(each)) is not None]
        rows.append(GroupLag(group_id, listed[group_id].state, len({each.topic for each in found}), len(found), sum(lags)))
    return sorted(rows, key=lambda row: (-row.lag, row.group))
