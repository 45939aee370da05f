"""What can be done with a group: reset its offsets, move them to another group or topic, delete them, delete the group.

Each has a page (GET) that shows what would be done, and a change (POST) that does it. The page's form carries the offsets that
were shown, and these are committed: what was seen is what is done.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ottla.client.admin.groups import delete_consumer_groups
from ottla.client.group_resets import (
    Plan,
    Planned,
    Reset,
    Scenario,
    Target,
    commit_plan,
    committed_offsets,
    delete_offsets,
    plan_move,
    plan_reset,
)
from ottla.console.app import Data, Refused, Visit, change, page
from ottla.console.clusters import soon
from ottla.console.pages.fields import confirmed, many, moment_ms, needed, pairs, topics_of, whole_number
from ottla.ids import TopicPartition

CHANGE_S = 30.0
PREVIEW_S = 5.0
PLACES = ("earliest", "latest", "time", "offset", "shift")
_SCENARIOS = {
    "earliest": Scenario.EARLIEST,
    "latest": Scenario.LATEST,
    "time": Scenario.DATETIME,
    "offset": Scenario.OFFSET,
    "shift": Scenario.SHIFT,
}


def _path(name: str) -> str:
    return f"/groups/{quote(name, safe='')}"


@page("/groups/{name}/reset", "group_reset.html")
async def reset_preview(visit: Visit) -> Data:
    """The new offsets, before anything is changed; without `to` only the form."""
    name, query = visit.segments["name"], visit.query
    to = query.get("to", "")
    committed = (await soon(committed_offsets(visit.view.cluster, [name])))[name]
    data: Data = {
        "title": f"Reset {name}",
        "name": name,
        "places": PLACES,
        "to": to,
        "value": query.get("value", ""),
        "chosen": [each for each in many(visit, "topic") if each.strip()],
        "topics": sorted({each.topic for each in committed}),
        "plan": None,
    }
    if to:
        wanted = Reset([name], topics_of(many(visit, "topic")) or None, _target(to, query.get("value", "")))
        planned = await soon(plan_reset(visit.view.cluster, wanted), PREVIEW_S)
        data["plan"] = _shown(planned, name, {each: one.offset for each, one in committed.items()})
    return data


def _target(to: str, value: str) -> Target:
    if to not in _SCENARIOS:
        raise Refused(400, f"{to!r} is no place to reset to: write {', '.join(PLACES)}")
    scenario = _SCENARIOS[to]
    if scenario is Scenario.DATETIME:
        return Target(scenario, moment_ms(value))
    if scenario is Scenario.OFFSET:
        return Target(scenario, whole_number(value, "the offset"))
    if scenario is Scenario.SHIFT:
        return Target(scenario, whole_number(value, "the shift", -(10**17)))
    return Target(scenario)


def _shown(planned: Planned, group: str, before: dict[TopicPartition, int]) -> Data:
    """A plan for a page: each partition with its offsets now and then."""
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "before": before.get(each),
            "after": offset,
            "change": None if each not in before else offset - before[each],
        }
        for each, offset in sorted(planned.plan.get(group, {}).items())
    ]
    changed = sum(each["before"] != each["after"] for each in rows)
    return {"rows": rows, "changed": changed, "refused": planned.refused, "notes": planned.notes, "text": _plan_text(rows)}


def _plan_text(rows: list[dict[str, Any]]) -> str:
    return "\n".join(f"{each['topic']}:{each['partition']}={each['after']}" for each in rows if each["before"] != each["after"])


def _given_plan(text: str) -> dict[TopicPartition, int]:
    """The offsets of a form: `orders:0=42`, one a line."""
    found = {}
    for place, offset in pairs(text, "new offset").items():
        topic, colon, partition = place.rpartition(":")
        if not colon:
            raise Refused(400, f"{place!r} is no partition: write orders:0=42, one a line")
        found[TopicPartition(topic, whole_number(partition, "the partition"))] = whole_number(offset, "the offset")
    return found


async def _commit(visit: Visit, group: str, given: Planned) -> int:
    """Commit what was shown. Refuses if the group has members now."""
    if given.refused:
        raise Refused(409, "; ".join(given.refused))
    plan: Plan = {group: given.plan.get(group, {})}
    if not plan[group]:
        raise Refused(400, "nothing was changed: there is no offset to commit")
    await soon(commit_plan(visit.view.cluster, plan), CHANGE_S)
    return len(plan[group])


@change("/groups/{name}/reset")
async def reset_group(visit: Visit) -> tuple[str, str]:
    """Commit new offsets: those of `plan`, or those that `to`, `value` and `topic` lead to."""
    name, form = visit.segments["name"], visit.form
    if form.get("plan", "").strip():
        wanted = Reset([name], None, Target(Scenario.FILE), {name: _given_plan(form["plan"])})
    else:
        wanted = Reset([name], topics_of(many(visit, "topic")) or None, _target(form.get("to", ""), form.get("value", "")))
    count = await _commit(visit, name, await soon(plan_reset(visit.view.cluster, wanted), CHANGE_S))
    return _path(name), f"The offsets of {count:,} {'partition' if count == 1 else 'partitions'} of group {name} were reset."


@page("/groups/{name}/move", "group_move.html")
async def move_preview(visit: Visit) -> Data:
    """The offsets that another group or other topics would get."""
    name, query = visit.segments["name"], visit.query
    target = query.get("target", "").strip()
    committed = (await soon(committed_offsets(visit.view.cluster, [name])))[name]
    data: Data = {
        "title": f"Move offsets of {name}",
        "name": name,
        "target": target,
        "renamed": query.get("renamed", ""),
        "chosen": [each for each in many(visit, "topic") if each.strip()],
        "topics": sorted({each.topic for each in committed}),
        "plan": None,
    }
    if target:
        renamed, chosen = pairs(query.get("renamed", ""), "new name of a topic"), data["chosen"]
        planned = await soon(plan_move(visit.view.cluster, name, target, renamed, chosen), PREVIEW_S)
        now = (await soon(committed_offsets(visit.view.cluster, [target])))[target]
        data["plan"] = _shown(planned, target, {each: one.offset for each, one in now.items()})
    return data


@change("/groups/{name}/move")
async def move(visit: Visit) -> tuple[str, str]:
    """Commit the offsets for the other group; with `delete_source`, delete the group that had them."""
    name, form = visit.segments["name"], visit.form
    target = needed(form, "target", "the group that gets the offsets")
    cluster = visit.view.cluster
    if form.get("plan", "").strip():
        wanted = Reset([target], None, Target(Scenario.FILE), {target: _given_plan(form["plan"])})
        planned = await soon(plan_reset(cluster, wanted), CHANGE_S)
    else:
        renamed = pairs(form.get("renamed", ""), "new name of a topic")
        planned = await soon(plan_move(cluster, name, target, renamed, many(visit, "topic")), CHANGE_S)
    count = await _commit(visit, target, planned)
    text = f"Group {target} has {count:,} offsets of group {name} now."
    if form.get("delete_source") and target != name:
        (await soon(delete_consumer_groups(cluster, [name]), CHANGE_S)).raise_first()
        text += f" Group {name} was deleted."
    return _path(target), text


@page("/groups/{name}/delete-offsets", "group_delete_offsets.html")
async def delete_offsets_preview(visit: Visit) -> Data:
    """The committed offsets that would be deleted."""
    name = visit.segments["name"]
    committed = (await soon(committed_offsets(visit.view.cluster, [name])))[name]
    chosen = topics_of(many(visit, "topic"))

    def is_chosen(each: TopicPartition) -> bool:
        return each.topic in chosen and (chosen[each.topic] is None or each.partition in (chosen[each.topic] or ()))

    return {
        "title": f"Delete offsets of {name}",
        "name": name,
        "topics": sorted({each.topic for each in committed}),
        "chosen": [each for each in many(visit, "topic") if each.strip()],
        "rows": [
            {"topic": each.topic, "partition": each.partition, "offset": one.offset}
            for each, one in sorted(committed.items())
            if is_chosen(each)
        ],
    }


@change("/groups/{name}/delete-offsets")
async def delete_some_offsets(visit: Visit) -> tuple[str, str]:
    """Delete the group's committed offsets of topics or partitions."""
    name = visit.segments["name"]
    topics = topics_of(many(visit, "topic"))
    if not topics:
        raise Refused(400, "nothing was deleted: choose the topics")
    results = await soon(delete_offsets(visit.view.cluster, name, topics), CHANGE_S)
    failed = [f"{each.topic}: {error}" if each.partition < 0 else str(error) for each, error in results.items() if error]
    if failed:
        done = len(results) - len(failed)
        raise Refused(409, f"{done:,} of {len(results):,} offsets were deleted: {'; '.join(dict.fromkeys(failed))}")
    return _path(name), f"The offsets of group {name} for {', '.join(topics)} were deleted."


@page("/groups/{name}/delete", "group_delete.html")
async def delete_preview(visit: Visit) -> Data:
    """What goes with the group."""
    name = visit.segments["name"]
    committed = (await soon(committed_offsets(visit.view.cluster, [name])))[name]
    return {
        "title": f"Delete {name}",
        "name": name,
        "offsets": len(committed),
        "topics": sorted({each.topic for each in committed}),
    }


@change("/groups/{name}/delete")
async def delete_group(visit: Visit) -> tuple[str, str]:
    """Delete a group without members; its name must be given as well."""
    name = visit.segments["name"]
    confirmed(visit, name, "the group's name")
    (await soon(delete_consumer_groups(visit.view.cluster, [name]), CHANGE_S)).raise_first()
    return "/groups", f"Group {name} was deleted."
