"""Consumer groups: the list with lag, and one group with its members and partitions."""

from __future__ import annotations

import asyncio

from ottla.client.admin.group_descriptions import describe_consumer_groups
from ottla.console.app import Data, Refused, Visit, page
from ottla.console.clusters import NotAnswering, lag_of
from ottla.console.pages.tables import tabulate
from ottla.errors import KafkaError


@page("/groups", "groups.html")
async def groups(visit: Visit) -> Data:
    """All groups. The lag of those on this page alone is asked for."""
    view = visit.view
    found = await view.groups.get()
    table = tabulate(
        visit,
        found,
        lambda each: each.group_id,
        {"name": lambda each: each.group_id, "state": lambda each: each.state, "coordinator": lambda each: each.coordinator},
        "name",
    )
    lags: dict[str, int | None] = {}
    try:
        async with asyncio.timeout(1.5):
            names = [each.group_id for each in table.rows if each.protocol in ("consumer", "")]
            ends = await view.ends.get(wait_s=1.0)
            for name, offsets in (await view.committed(names)).items() if names else ():
                lags[name] = None if isinstance(offsets, KafkaError) else lag_of(offsets, ends.ends)[0]
    except (TimeoutError, NotAnswering, KafkaError):
        pass  # the page shows dashes
    return {
        "title": "Consumer groups",
        "table": table._replace(rows=[])._asdict(),
        "rows": [
            {
                "name": each.group_id,
                "state": each.state,
                "type": each.type,
                "coordinator": each.coordinator,
                "lag": lags.get(each.group_id),
            }
            for each in table.rows
        ],
    }


@page("/groups/{name}", "group.html")
async def group(visit: Visit) -> Data:
    """One group."""
    view, name = visit.view, visit.segments["name"]
    async with asyncio.timeout(2):
        results = await describe_consumer_groups(view.cluster, [name])
        committed = (await view.committed([name])).get(name, {})
    if name in results.errors:
        raise Refused(404, str(results.errors[name]))
    described = results[name]
    ends = await view.ends.get()
    offsets = {} if isinstance(committed, KafkaError) else committed
    total, rows = lag_of(offsets, ends.ends)
    owners = {each: member for member in described.members for each in member.assignment}
    known = {(each["topic"], each["partition"]) for each in rows}
    rows += [
        {"topic": key.topic, "partition": key.partition, "offset": None, "end": ends.ends.get(key), "lag": None}
        for key in owners
        if (key.topic, key.partition) not in known
    ]
    by_key = {(key.topic, key.partition): member for key, member in owners.items()}
    for row in rows:
        owner = by_key.get((row["topic"], row["partition"]))
        row["member"] = None if owner is None else owner.client_id
        row["host"] = None if owner is None else owner.host
    return {
        "title": name,
        "name": name,
        "state": described.state,
        "type": described.type,
        "assignor": described.assignor,
        "coordinator": described.coordinator,
        "lag": total,
        "rows": sorted(rows, key=lambda each: (each["topic"], each["partition"])),
        "members": [
            {
                "id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "instance": member.group_instance_id,
                "partitions": [str(each) for each in member.assignment],
            }
            for member in described.members
        ],
    }
