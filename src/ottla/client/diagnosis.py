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
        return Diagnosis(REASSIGNING, *_moving(around.reassignment, around.live_brokers))
    return Diagnosis(OK)


def safe_leaders(partition: PartitionDescription) -> list[int]:
    """The replicas that hold every acknowledged record: those in sync, and eligible ones (ELR)."""
    safe = {*partition.isr, *(partition.eligible_leader_replicas or ())}
    return [replica for replica in partition.replicas if replica in safe]


def unclean_leader(partition: PartitionDescription, live_brokers: frozenset[int]) -> int | None:
    """The broker that an unclean election makes the leader: the first replica whose broker and log directory are up."""
    return next((each for each in partition.replicas if each in live_brokers and each not in partition.offline), None)


def loss(name: TopicPartition, partition: PartitionDescription, live_brokers: frozenset[int]) -> str:
    """What an unclean election of this partition would lose; empty if there is no replica to elect."""
    leader = unclean_leader(partition, live_brokers)
    if leader is None:
        return ""
    return (
        f"an unclean election makes broker {leader} lead {name}, and loses what was acknowledged while it was out of sync, "
        "for good"
    )


def _offline(name: TopicPartition, partition: PartitionDescription, around: Surroundings) -> tuple[str, str]:
    live, safe = around.live_brokers, safe_leaders(partition)
    if partition.leader is not None:
        why = f"its leader, broker {partition.leader}, is down, and no other has been elected yet"
        return why, f"wait for broker.session.timeout.ms, or start broker {partition.leader}"
    ready = [replica for replica in safe if replica in live and replica not in partition.offline]
    if ready:
        return f"broker {_ids(ready, 'or')} can lead, but is not elected yet", "wait some seconds and look again"
    unclean = _or_unclean(name, around, unclean_leader(partition, live))
    broken = [replica for replica in safe if replica in live]
    if broken:
        why = f"the log directory of {_brokers(broken, 'and')}, which holds every acknowledged record, has failed"
        return why, f"mend it and start the broker again (`ottla brokers describe {broken[0]}`){unclean}"
    if safe:
        return _awaited(partition, safe, live, unclean)
    last = partition.last_known_eligible_leader_replicas or ()
    why = "no replica is known to hold every acknowledged record: those in sync have stopped without a clean shutdown"
    if last:
        return f"{why}; {_brokers(last, 'and')} led last", f"start {_brokers(last, 'or')}{unclean}"
    return why, f"start {_brokers(partition.replicas, 'and')}{unclean}"


def _awaited(partition: PartitionDescription, safe: Sequence[int], live: frozenset[int], unclean: str) -> tuple[str, str]:
    """All replicas that are safe are down. A killed one is no longer safe once it is back: the controller takes it out of the
    ELR, since its machine may have lost power. When the last one is back like that, the last known leader leads.
    """
    led_last = partition.last_known_eligible_leader_replicas or ()
    killed = [each for each in led_last if each in live]
    others = [each for each in partition.replicas if each in live and each not in killed]
    why = (
        f"only {_brokers(safe, 'and')} {'holds' if len(safe) == 1 else 'hold'} every acknowledged record, and {_are_down(safe)}"
    )
    if killed:
        why += f"; broker {_ids(killed, 'and')} led last and is up, but was killed: it waits for {_brokers(safe, 'and')}"
    if others:
        why += (
            f"; {_brokers(others, 'and')} {_are(others)} up, but {'was' if len(others) == 1 else 'were'} out of sync or killed"
        )
    needed = [*(each for each in led_last if each not in live), *(each for each in safe if each not in led_last)]
    if len(needed) > 1:
        remedy = f"start {_brokers(needed, 'and')}: one that was killed leads only once the last of them is back"
    elif killed:
        remedy = f"start broker {needed[0]}: then it or broker {_ids(killed, 'or')} leads, and nothing is lost"
    else:
        remedy = f"start broker {needed[0]}: it leads, and nothing is lost"
    return why, remedy + unclean


def _or_unclean(name: TopicPartition, around: Surroundings, leader: int | None) -> str:
    """The way out if the brokers that are missing do not come back. `leader`: who would lead then."""
    if leader is None:
        return ""
    if around.allows_unclean:
        return (
            f". unclean.leader.election.enable is on: the controller will let broker {leader} lead, and what was "
            "acknowledged while it was out of sync is lost"
        )
    return (
        f". If that is impossible: `ottla elect-leaders {name.topic}:{name.partition} --unclean` lets broker {leader} "
        "lead, and loses what was acknowledged while it was out of sync"
    )


def _missing(missing: Sequence[int], around: Surroundings) -> tuple[str, str]:
    """Why replicas are out of sync, and what to do."""
    down = [replica for replica in missing if replica not in around.live_brokers]
    behind = [replica for replica in missing if replica in around.live_brokers]
    why, remedies = [], []
    if down:
        why.append(f"{_brokers(down, 'and')} {_are(down)} down")
        remedies.append(f"start {_brokers(down, 'and')}")
    if behind:
        why.append(f"{_brokers(behind, 'and')} {_are(behind)} up, but behind")
        catches_up = "has caught up; if it does not, its log says why"
        catch_up = "have caught up; if one does not, its log says why"
        remedies.append(f"wait until {_brokers(behind, 'and')} {catches_up if len(behind) == 1 else catch_up}")
    return "; ".join(why), "; ".join(remedies)


def _moving(reassignment: PartitionReassignment, live_brokers: frozenset[int]) -> tuple[str, str]:
    """Which replicas come and go, and what to do if that cannot end."""
    down = [broker for broker in reassignment.adding if broker not in live_brokers]
    parts = []
    if reassignment.adding:
        parts.append(f"{_brokers(reassignment.adding, 'and')} {_are(reassignment.adding)} being added")
    if reassignment.removing:
        parts.append(f"{_brokers(reassignment.removing, 'and')} will be removed")
    if down:
        parts.append(f"{_brokers(down, 'and')} {_are(down)} down")
        stop = "stop the move with `ottla reassign cancel PLAN`, or all moves with `ottla reassign cancel --all`"
        return "; ".join(parts), f"start {_brokers(down, 'and')}, or {stop}"
    return "; ".join(parts), "wait; `ottla reassign list` shows what moves"


def _are_down(brokers: Sequence[int]) -> str:
    return "it is down" if len(brokers) == 1 else "they are down"


def _are(brokers: Sequence[int]) -> str:
    return "is" if len(brokers) == 1 else "are"


def _brokers(ids: Sequence[int], word: str) -> str:
    """`broker 1`, `brokers 1 and 2`, `broker 1 or 2`."""
    return f"broker{'s' if len(ids) > 1 and word == 'and' else ''} {_ids(ids, word)}"


def _ids(ids: Sequence[int], word: str) -> str:
    """`1, 2 or 3`."""
    return listed([str(each) for each in ids], len(ids)).replace(" and ", f" {word} ")
