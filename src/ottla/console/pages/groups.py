"""Consumer groups: the list with lag, status and trend, and one group with its members and partitions.

All groups of a cluster are looked at in the background, as long as somebody has opened one of these pages within the last hour;
looking takes at most a tenth of the time. A page never waits for that: without numbers yet, the lag of its own rows is asked
for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ottla.client.admin.group_descriptions import describe_consumer_groups
from ottla.client.admin.groups import GroupListing
from ottla.client.lag import LagMonitor, LagReader, WatchedGroup
from ottla.client_core.lag import Status
from ottla.console.app import Data, Refused, Visit, page
from ottla.console.clusters import WAIT_S, ClusterView, NotAnswering
from ottla.console.pages.tables import tabulate
from ottla.errors import KafkaError, OttlaError

LOOK_S = 10.0
"""The shortest time between two looks at all groups."""
LOOKING_SHARE = 10
LAGS_S = 3.0
"""How long sums over all groups are kept: at 10,000 groups they take 30 ms."""
WATCHED_S = 3600.0
FIRST_S = 1.2
"""How long the first page waits for numbers."""
COLOURS = {Status.OK: "good", Status.IDLE: "quiet", Status.NOTFOUND: "quiet", Status.WARN: "warn"}


class Watch:
    """The groups of one cluster, looked at again and again while somebody is interested."""

    def __init__(self, view: ClusterView) -> None:
        self.monitor = LagMonitor(LagReader(view.background), distance_ms=int(LOOK_S * 500))
        self._wanted_at_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self.lags: Mapping[str, int] = {}
        """By topic, of `lags_of` as of `lags_at_s`."""
        self.lags_of: Mapping[str, WatchedGroup] | None = None
        self.lags_at_s = -1e9

    async def ready(self, wait_s: float = FIRST_S) -> bool:
        """Go on looking; whether there are numbers of all groups, which the first visitor waits for a little."""
        self._wanted_at_s = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(wait_s):
                await self._looked.wait()
        except TimeoutError:
            return False
        return True

    async def _run(self) -> None:
        while time.monotonic() - self._wanted_at_s < WATCHED_S:
            began_s = time.monotonic()
            try:
                await self.monitor.look()
                self._looked.set()
            except (KafkaError, OttlaError, TimeoutError):
                pass  # the page says that the cluster does not answer; this tries again
            await asyncio.sleep(max(LOOK_S, LOOKING_SHARE * (time.monotonic() - began_s)))
        self._looked.clear()


_watches: WeakKeyDictionary[ClusterView, Watch] = WeakKeyDictionary()


def watch_of(view: ClusterView) -> Watch:
    """The watch of a cluster."""
    if view not in _watches:
        _watches[view] = Watch(view)
    return _watches[view]


def numbers(each: WatchedGroup | None, trend: list[int]) -> dict[str, Any]:
    """What lists and pages show of a group's lag. None and empty lists before anything is known."""
    if each is None:
        return {"lag": None, "lag_s": None, "rate_in": None, "rate_out": None, "catch_up_s": None, "status": None} | {
            "colour": "quiet",
            "trend": trend,
        }
    return {
        "lag": each.lag.lag if each.lag.error is None else None,
        "lag_s": each.lag.lag_s if each.lag.error is None else None,
        "rate_in": each.rates.rate_in,
        "rate_out": each.rates.rate_out,
        "catch_up_s": each.catch_up_s,
        "status": each.status.name,
        "colour": COLOURS.get(each.status, "bad"),
        "trend": trend,
    }


async def lag_by_topic(view: ClusterView) -> Mapping[str, int]:
    """The lag of the group that is furthest behind in each topic, as far as groups were looked at."""
    watch = watch_of(view)
    await watch.ready(0)
    groups = watch.monitor.groups
    if watch.lags_of is not groups or time.monotonic() - watch.lags_at_s > LAGS_S:
        found: dict[str, int] = {}
        for watched in groups.values():
            behind: dict[str, int] = {}
            for each in watched.lag.partitions:
                if (lag := each.lag) is not None:
                    behind[each.topic] = behind.get(each.topic, 0) + lag
            for topic, lag in behind.items():
                found[topic] = max(found.get(topic, 0), lag)
        watch.lags, watch.lags_of, watch.lags_at_s = found, groups, time.monotonic()
    return watch.lags


async def readers_of(view: ClusterView, topic: str) -> list[Data]:
    """The groups that read a topic, the one that is furthest behind first."""
    watch = watch_of(view)
    await watch.ready(0)
    rows = []
    for name, watched in watch.monitor.groups.items():
        own = [each for each in watched.lag.partitions if each.topic == topic and each.offset is not None]
        if own:
            seconds = [each.lag_s for each in own if each.lag_s is not None]
            lag = sum(each.lag or 0 for each in own)
            rows.append({"name": name, "state": watched.lag.state, "lag": lag, "lag_s": max(seconds, default=None)})
    return sorted(rows, key=lambda each: (-each["lag"], each["name"]))


@page("/groups", "groups.html")
async def groups(visit: Visit) -> Data:
    """All groups. Without numbers of all of them yet, the lag of those on this page alone is asked for."""
    view = visit.view
    found = await view.groups.get()
    watch = watch_of(view)
    monitor = watch.monitor
    is_ready = await watch.ready()
    known = dict(monitor.groups)

    def of(each: GroupListing, value: str) -> Any:
        watched = known.get(each.group_id)
        return None if watched is None else getattr(watched.lag, value)

    table = tabulate(
        visit,
        found,
        lambda each: each.group_id,
        {
            "name": lambda each: each.group_id,
            "state": lambda each: each.state,
            "coordinator": lambda each: each.coordinator,
            "lag": lambda each: of(each, "lag"),
            "seconds": lambda each: of(each, "lag_s"),
            "status": lambda each: known[each.group_id].status % Status.IDLE if each.group_id in known else None,
        },
        "name",
    )
    if not is_ready:
        missing = [
            each for each in table.rows if each.group_id not in known and (each.is_of_consumers or each.type == "Streams")
        ]
        try:
            async with asyncio.timeout(0.5):
                known |= {each.lag.group: each for each in await monitor.look(missing, with_times=False)} if missing else {}
        except (TimeoutError, NotAnswering, KafkaError):
            pass  # the page shows dashes
    return {
        "title": "Consumer groups",
        "table": table._replace(rows=[])._asdict(),
        "is_complete": is_ready,
        "rows": [
            {
                "name": each.group_id,
                "state": each.state,
                "type": each.type,
                "coordinator": each.coordinator,
                **numbers(known.get(each.group_id), [sample.lag for sample in monitor.history(each.group_id)]),
            }
            for each in table.rows
        ],
    }


@page("/groups/{name}", "group.html")
async def group(visit: Visit) -> Data:
    """One group."""
    view, name = visit.view, visit.segments["name"]
    watch = watch_of(view)
    await watch.ready(0)
    monitor = watch.monitor
    try:
        async with asyncio.timeout(WAIT_S):
            results = await describe_consumer_groups(view.cluster, [name])
            if name in results.errors:
                raise Refused(404, str(results.errors[name]))
            described = results[name]
            listing = GroupListing(name, "consumer", described.state, described.type, described.coordinator)
            (watched,) = await monitor.look([listing], members={name: described.members})
    except TimeoutError:
        raise NotAnswering(f"no answer within {WAIT_S:g} s") from None
    history = monitor.history(name)
    return {
        "title": name,
        "name": name,
        "state": described.state,
        "type": described.type,
        "assignor": described.assignor,
        "coordinator": described.coordinator,
        "lost": watched.lag.lost,
        "error": watched.lag.error,
        **numbers(watched, [sample.lag for sample in history]),
        "history": [{"at": sample.at_s, "lag": sample.lag, "lag_s": sample.lag_s} for sample in history],
        "rows": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": each.offset,
                "end": each.end,
                "lag": each.lag,
                "lag_s": each.lag_s,
                "lost": each.lost,
                "status": status.name,
                "colour": COLOURS.get(status, "bad"),
                "member": None if each.member is None else each.member.client_id,
                "host": None if each.member is None else each.member.host,
            }
            for each, status in zip(
                watched.lag.partitions, watched.statuses or [Status.OK] * len(watched.lag.partitions), strict=True
            )
        ],
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
