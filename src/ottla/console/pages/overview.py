"""The first page: nodes, health, rates, and what needs attention."""

from __future__ import annotations

from ottla.client.health import problems_of
from ottla.console.app import Data, Visit, page


@page("/", "overview.html")
async def overview(visit: Visit) -> Data:
    """The cluster in one look."""
    view = visit.view
    state = await view.state.get()
    problems = problems_of(state)
    quorum = state.quorum
    topics = [each for each in state.topics.values() if not each.is_internal]
    led: dict[int, int] = {}
    held: dict[int, int] = {}
    for topic in state.topics.values():
        for each in topic.partitions:
            if each.leader is not None:
                led[each.leader] = led.get(each.leader, 0) + 1
            for replica in each.replicas:
                held[replica] = held.get(replica, 0) + 1
    rates = [rate for topic in topics if (rate := view.rate(topic.name)) is not None]
    ends_failure = None
    try:
        await view.ends.get(wait_s=0.5)
    except Exception as failure:
        ends_failure = str(failure)
    return {
        "title": "Overview",
        "cluster_id": state.described.cluster_id,
        "address": view.address,
        "controller": state.described.controller,
        "quorum_leader": None if quorum is None else quorum.leader_id,
        "health": _sentence(len(problems), len(state.described.nodes), len(topics)),
        "is_healthy": not problems,
        "problems": [
            {
                "kind": each.kind.value,
                "text": each.text,
                "partitions": list(each.partitions[:20]),
                "count": len(each.partitions),
            }
            for each in problems
        ],
        "nodes": [
            {
                "id": node.id,
                "address": f"{node.host}:{node.port}",
                "rack": node.rack,
                "state": "fenced" if node.is_fenced else "up",
                "is_controller": node.id == state.described.controller,
                "leads": led.get(node.id, 0),
                "replicas": held.get(node.id, 0),
            }
            for node in sorted(state.described.nodes.values(), key=lambda each: each.id)
        ],
        "topics": len(topics),
        "partitions": sum(len(each.partitions) for each in topics),
        "rate": sum(rates) if rates else None,
        "age_s": round(view.state.age_s, 1),
        "stale": view.state.failure or ends_failure,
    }


def _sentence(problems: int, nodes: int, topics: int) -> str:
    what = f"{nodes} {'node' if nodes == 1 else 'nodes'}, {topics:,} {'topic' if topics == 1 else 'topics'}"
    if not problems:
        return f"Everything is well: {what}, and every replica is in sync."
    return f"{problems} {'thing needs' if problems == 1 else 'things need'} attention: {what}."
