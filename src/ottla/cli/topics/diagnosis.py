"""Why a partition is not healthy, and what to do about it. Pure: descriptions in, words out.

Health: the partition has a leader, and every replica is in sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.client.admin.reassignments import PartitionReassignment
from ottla.client.admin.topic_descriptions import PartitionDescription
from ottla.errors.texts import listed
from ottla.ids import TopicPartition

OFFLINE: Final = "offline"
UNDER_MIN_ISR: Final = "under-min-isr"
AT_MIN_ISR: Final = "at-min-isr"
UNDER_REPLICATED: Final = "under-replicated"
REASSIGNING: Final = "reassigning"
OK: Final = "ok"


class Surroundings(NamedTuple):
    """What a diagnosis needs besides the partition itself."""

    live_brokers: frozenset[int]
    min_isr: int
    allows_unclean: bool
    """unclean.leader.election.enable."""
    reassignment: PartitionReassignment | None = None


class Diagnosis(NamedTuple):
    """What is wrong with a partition, why, and what to do next. Texts are empty if it is healthy."""

    state: str
    why: str = ""
    remedy: str = ""


def diagnose(name: TopicPartition, partition: PartitionDescription, around: Surroundings) -> Diagnosis:
    """The worst that is wrong with a partition."""
    if partition.leader not in around.live_brokers:
        return Diagnosis(OFFLINE, *_offline(name, partition, around))
    adding = () if around.reassignment is None else around.reassignment.adding
    missing = [replica for replica in partition.replicas if replica not in partition.isr and replica not in adding]
    in_sync, wanted = len(partition.isr), min(around.min_isr, len(partition.replicas))
    why, remedy = _missing(missing, around)
    if in_sync < wanted:
        refused = f"{in_sync} in sync, but min.insync.replicas is {around.min_isr}: acks=all is refused"
        return Diagnosis(UNDER_MIN_ISR, "; ".join(filter(None, (refused, why))), remedy)
    if missing:
        if in_sync > wanted:
            return Diagnosis(UNDER_REPLICATED, why, remedy)
        next_loss = "there is no leader" if in_sync == 1 else "acks=all is refused"
        return Diagnosis(AT_MIN_ISR, f"{why}; if one more goes, {next_loss}", remedy)
    if around.reassignment is not None:
        return Diagnosis(REASSIGNING, _moving(around.reassignment), "wait, or `ottla reassign list` shows how far it is")
    return Diagnosis(OK)


def safe_leaders(partition: PartitionDescription) -> list[int]:
    """The replicas that hold every acknowledged record: those in sync, and eligible ones (ELR)."""
    safe = {*partition.isr, *(partition.eligible_leader_replicas or ())}
    return [replica for replica in partition.replicas if replica in safe]


def loss(name: TopicPartition, partition: PartitionDescription, live_brokers: frozenset[int]) -> str:
    """What an unclean election of this partition would lose; empty if there is no replica to elect."""
    candidates = [replica for replica in partition.replicas if replica in live_brokers]
    if not candidates:
        return ""
    who = f"broker {_ids(candidates, 'or')}"
    return f"an unclean election makes {who} lead {name}, and loses what was acknowledged while it was out of sync, for good"


def _offline(name: TopicPartition, partition: PartitionDescription, around: Surroundings) -> tuple[str, str]:
    live, safe = around.live_brokers, safe_leaders(partition)
    if partition.leader is not None:
        why = f"its leader, broker {partition.leader}, is down, and no other has been elected yet"
        return why, f"wait for broker.session.timeout.ms, or start broker {partition.leader}"
    ready = [replica for replica in safe if replica in live and replica not in partition.offline]
    if ready:
        return f"broker {_ids(ready, 'or')} can lead, but is not elected yet", "wait some seconds and look again"
    up = [replica for replica in partition.replicas if replica in live]
    broken = [replica for replica in safe if replica in live]
    if broken:
        why = f"the log directory of broker {_ids(broken, 'and')}, which holds every acknowledged record, has failed"
        return why, f"mend it and start the broker again (`ottla brokers describe {broken[0]}`){_or_unclean(name, around, up)}"
    if safe:
        others = f"; broker {_ids(up, 'and')} is up, but was out of sync" if up else ""
        holds = "holds" if len(safe) == 1 else "hold"
        why = f"only broker {_ids(safe, 'and')} {holds} every acknowledged record, and {_are_down(safe)}{others}"
        return why, f"start broker {_ids(safe, 'or')}: it leads, and nothing is lost{_or_unclean(name, around, up)}"
    last = partition.last_known_eligible_leader_replicas or ()
    why = "no replica is known to hold every acknowledged record: those in sync have stopped without a clean shutdown"
    if last:
        return f"{why}; broker {_ids(last, 'and')} led last", f"start broker {_ids(last, 'or')}{_or_unclean(name, around, up)}"
    return why, f"start brokers {_ids(partition.replicas, 'and')}{_or_unclean(name, around, up)}"


def _or_unclean(name: TopicPartition, around: Surroundings, up: Sequence[int]) -> str:
    """The way out if the brokers that are missing do not come back."""
    if not up:
        return ""
    if around.allows_unclean:
        return (
            f". unclean.leader.election.enable is on: the controller will let broker {_ids(up, 'or')} lead, and what was "
            "acknowledged while it was out of sync is lost"
        )
    return (
        f". If that is impossible: `ottla elect-leaders {name.topic}:{name.partition} --unclean` lets broker {_ids(up, 'or')} "
        "lead, and loses what was acknowledged while it was out of sync"
    )


def _missing(missing: Sequence[int], around: Surroundings) -> tuple[str, str]:
    """Why replicas are out of sync, and what to do."""
    down = [replica for replica in missing if replica not in around.live_brokers]
    behind = [replica for replica in missing if replica in around.live_brokers]
    why, remedies = [], []
    if down:
        why.append(f"broker {_ids(down, 'and')} {'is' if len(down) == 1 else 'are'} down")
        remedies.append(f"start broker {_ids(down, 'and')}")
    if behind:
        why.append(f"broker {_ids(behind, 'and')} {'is' if len(behind) == 1 else 'are'} up, but behind")
        remedies.append(f"wait until broker {_ids(behind, 'and')} has caught up; if it does not, its log says why")
    return "; ".join(why), "; ".join(remedies)


def _moving(reassignment: PartitionReassignment) -> str:
    parts = []
    if reassignment.adding:
        parts.append(f"broker {_ids(reassignment.adding, 'and')} is being added")
    if reassignment.removing:
        parts.append(f"broker {_ids(reassignment.removing, 'and')} will be removed")
    return "; ".join(parts)


def _are_down(brokers: Sequence[int]) -> str:
    return "it is down" if len(brokers) == 1 else "they are down"


def _ids(ids: Sequence[int], word: str) -> str:
    """`1, 2 or 3`."""
    return listed([str(each) for each in ids], len(ids)).replace(" and ", f" {word} ")
