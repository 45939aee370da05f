"""The first page: nodes, health, rates, and what needs attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin.configs import describe_configs
from ottla.client.admin.reassignments import PartitionReassignment, list_partition_reassignments
from ottla.client.diagnosis import (
    AT_MIN_ISR,
    OFFLINE,
    OK,
    REASSIGNING,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    Diagnosis,
    Surroundings,
    diagnose,
)
from ottla.client.health import ClusterState, ProblemKind, problems_of
from ottla.console.app import Data, Visit, page
from ottla.console.clusters import ClusterView, NotAnswering, soon
from ottla.errors import KafkaError, OttlaError
from ottla.errors.texts import sized
from ottla.ids import TopicPartition

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
ASK_S = 0.6
TOPICS_MAX = 500
"""The settings of so many topics in trouble are asked for; the others are taken to have Kafka's defaults."""
PARTITIONS_SHOWN = 20
LITTLE_DISK = 0.15
ORDER = (
    ProblemKind.NO_CONTROLLER.value,
    OFFLINE,
    UNDER_MIN_ISR,
    ProblemKind.FENCED_BROKER.value,
    ProblemKind.UNREGISTERED_BROKER.value,
    "failed-directory",
    ProblemKind.SILENT_VOTER.value,
    AT_MIN_ISR,
    UNDER_REPLICATED,
    "little-disk",
)
"""The worst first."""


@page("/", "overview.html")
async def overview(visit: Visit) -> Data:
    """The cluster in one look."""
    view = visit.view
    state = await view.state.get()
    problems = await attention(view, state)
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
                "kind": each.kind,
                "text": each.text,
                "remedy": each.remedy,
                "partitions": list(each.partitions[:PARTITIONS_SHOWN]),
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


class Trouble(NamedTuple):
    """Something that needs attention, and what to do about it."""

    kind: str
    text: str
    remedy: str = ""
    partitions: tuple[str, ...] = ()


async def attention(view: ClusterView, state: ClusterState) -> list[Trouble]:
    """Everything that needs attention; of partitions what `topics describe --check` says, one entry for equal troubles."""
    found = [
        Trouble(each.kind.value, each.text)
        for each in problems_of(state)
        if each.kind not in (ProblemKind.OFFLINE_PARTITION, ProblemKind.UNDER_REPLICATED)
    ]
    found += await _partitions(view, state)
    found += await _disks(view)
    return sorted(found, key=lambda each: ORDER.index(each.kind) if each.kind in ORDER else len(ORDER))


async def _partitions(view: ClusterView, state: ClusterState) -> list[Trouble]:
    live = frozenset(node.id for node in state.described.nodes.values() if not node.is_fenced)
    sick = [
        (topic.name, each)
        for topic in state.topics.values()
        for each in topic.partitions
        if each.leader not in live or len(each.isr) < len(each.replicas)
    ]
    if not sick:
        return []
    settings = await _settings(view, sorted({name for name, _ in sick})[:TOPICS_MAX])
    moving = await _moving(view)
    groups: dict[Diagnosis, list[str]] = {}
    for name, each in sick:
        min_isr, allows_unclean = settings.get(name, (1, False))
        key = TopicPartition(name, each.partition)
        diagnosis = diagnose(key, each, Surroundings(live, min_isr, allows_unclean, moving.get(key)))
        if diagnosis.state not in (OK, REASSIGNING):
            # A remedy that names its partition counts as the same as those of others.
            remedy = diagnosis.remedy.replace(f"{name}:{each.partition} ", "TOPIC:PARTITION ")
            groups.setdefault(diagnosis._replace(remedy=remedy), []).append(str(key))
    troubles = []
    for diagnosis, names in groups.items():
        who = f"{names[0]} is" if len(names) == 1 else f"{len(names):,} partitions are"
        remedy = diagnosis.remedy
        if len(names) == 1:
            remedy = remedy.replace("TOPIC:PARTITION ", f"{':'.join(names[0].rsplit('-', 1))} ")
        text = f"{who} {diagnosis.state.replace('-', ' ')}: {diagnosis.why}"
        troubles.append(Trouble(diagnosis.state, text, remedy, tuple(names)))
    return troubles


async def _settings(view: ClusterView, names: list[str]) -> dict[str, tuple[int, bool]]:
    """min.insync.replicas and unclean.leader.election.enable of topics, as far as brokers say in time."""
    try:
        results = await soon(
            describe_configs(view.cluster, [("topic", name) for name in names], names=[MIN_ISR, UNCLEAN]), ASK_S
        )
    except (KafkaError, OttlaError):
        return {}
    _ = results.errors
    found = {}
    for resource, entries in results.values_found.items():
        value = entries[MIN_ISR].value if MIN_ISR in entries else None
        unclean = UNCLEAN in entries and entries[UNCLEAN].value == "true"
        found[resource.name] = (int(value or 1), unclean)
    return found


async def _moving(view: ClusterView) -> Mapping[TopicPartition, PartitionReassignment]:
    try:
        return await soon(list_partition_reassignments(view.cluster), ASK_S)
    except (KafkaError, OttlaError):
        return {}


async def _disks(view: ClusterView) -> list[Trouble]:
    """Log directories that have failed, and disks that are nearly full."""
    try:
        directories = await view.log_dirs.get(wait_s=0.3)
    except NotAnswering:
        return []
    found = []
    for broker, many in sorted(directories.items()):
        for each in many:
            if each.error is not None:
                text = f"the log directory {each.path} of broker {broker} has failed: its replicas there are offline"
                remedy = (
                    f"mend the disk, and start broker {broker} again; `ottla brokers describe {broker}` shows its directories"
                )
                found.append(Trouble("failed-directory", text, remedy))
            elif each.total_bytes and each.usable_bytes is not None and each.usable_bytes < LITTLE_DISK * each.total_bytes:
                left = f"{sized(each.usable_bytes)} of {sized(each.total_bytes)}"
                text = f"the disk with {each.path} of broker {broker} has {left} left"
                remedy = "let topics keep less (retention.ms, retention.bytes), move partitions away, or take a larger disk"
                found.append(Trouble("little-disk", text, remedy))
    return found


def _sentence(problems: int, nodes: int, topics: int) -> str:
    what = f"{nodes} {'node' if nodes == 1 else 'nodes'}, {topics:,} {'topic' if topics == 1 else 'topics'}"
    if not problems:
        return f"Everything is well: {what}, and every replica is in sync."
    return f"{problems} {'thing needs' if problems == 1 else 'things need'} attention: {what}."
