"""What is wrong with a partition, why, and what to do next."""

import pytest

from ottla.client.admin.reassignments import PartitionReassignment
from ottla.client.admin.topic_descriptions import PartitionDescription
from ottla.client.diagnosis import Surroundings, diagnose, loss, safe_leaders
from ottla.ids import TopicPartition

NAME = TopicPartition("orders", 0)
ALL = frozenset({1, 2, 3})
UNCLEAN = "`ottla elect-leaders orders:0 --unclean` lets broker 1 lead, and loses what was acknowledged"


def partition(
    leader: int | None = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    elr: tuple[int, ...] | None = (),
    last: tuple[int, ...] | None = (),
    offline: tuple[int, ...] = (),
) -> PartitionDescription:
    return PartitionDescription(0, leader, 0, (1, 2, 3), isr, offline, elr, last)


def around(live: frozenset[int] = ALL, min_isr: int = 1, unclean: bool = False) -> Surroundings:
    return Surroundings(live, min_isr, unclean)


def test_healthy_partition_has_no_texts() -> None:
    assert diagnose(NAME, partition(), around()) == ("ok", "", "")


@pytest.mark.parametrize(
    ("isr", "live", "min_isr", "state", "why", "remedy"),
    [
        ((1, 2), {1, 2}, 1, "under-replicated", "broker 3 is down", "start broker 3"),
        ((1, 2), {1, 2, 3}, 1, "under-replicated", "broker 3 is up, but behind", "wait until broker 3 has caught up; if it"),
        ((1, 2), {1, 2}, 2, "at-min-isr", "broker 3 is down; if one more goes, acks=all is refused", "start broker 3"),
        ((1,), {1}, 1, "at-min-isr", "brokers 2 and 3 are down; if one more goes, there is no leader", "start brokers 2 and 3"),
        (
            (1,),
            {1, 3},
            2,
            "under-min-isr",
            "1 in sync, but min.insync.replicas is 2: acks=all is refused; broker 2 is down; ",
            "",
        ),
    ],
)
def test_missing_replicas_are_named(
    isr: tuple[int, ...], live: set[int], min_isr: int, state: str, why: str, remedy: str
) -> None:
    found = diagnose(NAME, partition(isr=isr), around(frozenset(live), min_isr))
    assert found.state == state
    assert found.why.startswith(why)
    assert found.remedy.startswith(remedy)


def test_partition_that_waits_for_its_last_in_sync_replica() -> None:
    """Replicas 1, 2 and 3 were killed in this order, and 1 is started alone."""
    for waits in (partition(None, isr=(), elr=(3,), last=(3,)), partition(None, isr=(3,), elr=None, last=None)):
        found = diagnose(NAME, waits, around(frozenset({1, 9})))
        assert found.state == "offline"
        assert found.why == (
            "only broker 3 holds every acknowledged record, and it is down; broker 1 is up, but was out of sync or killed"
        )
        assert found.remedy.startswith("start broker 3: it leads, and nothing is lost. If that is impossible: ")
        assert UNCLEAN in found.remedy
    allowed = diagnose(NAME, partition(None, isr=(), elr=(3,)), around(frozenset({1}), unclean=True))
    assert "unclean.leader.election.enable is on: the controller will let broker 1 lead" in allowed.remedy


def test_partition_without_any_live_replica() -> None:
    found = diagnose(NAME, partition(None, isr=(), elr=(2, 3)), around(frozenset({9})))
    assert found.why == "only brokers 2 and 3 hold every acknowledged record, and they are down"


def test_killed_replicas_lead_only_when_all_of_them_are_back() -> None:
    """The controller takes a replica that was killed out of the ELR when it comes back (docs/decisions/0015)."""
    both = diagnose(NAME, partition(None, isr=(), elr=(2, 3), last=(3,)), around(frozenset({9})))
    assert both.remedy == "start brokers 3 and 2: one that was killed leads only once the last of them is back"
    one_back = diagnose(NAME, partition(None, isr=(), elr=(2,), last=(3,)), around(frozenset({3})))
    assert one_back.why.endswith("and it is down; broker 3 led last and is up, but was killed: it waits for broker 2")
    assert one_back.remedy.startswith("start broker 2: then it or broker 3 leads, and nothing is lost. If that is")
    gone_again = diagnose(NAME, partition(None, isr=(), elr=(2,), last=(3,)), around(frozenset({9})))
    assert gone_again.remedy.startswith("start brokers 3 and 2: ")


def test_grammar_of_several_brokers() -> None:
    found = diagnose(NAME, partition(None, isr=(), elr=(3,), last=(3,)), around(frozenset({1, 2})))
    assert found.why.endswith("it is down; brokers 1 and 2 are up, but were out of sync or killed")
    assert "--unclean` lets broker 1 lead" in found.remedy, "the controller takes the first replica that is up"
    found = diagnose(NAME, partition(isr=(1,)), around(min_isr=1))
    assert found.remedy == "wait until brokers 2 and 3 have caught up; if one does not, its log says why"


def test_partition_whose_last_leader_stopped_uncleanly() -> None:
    found = diagnose(NAME, partition(None, isr=(), elr=(), last=(3,)), around(frozenset({1})))
    assert found.why.endswith("broker 3 led last")
    assert found.remedy.startswith("start broker 3. If that is impossible: ")
    unknown = diagnose(NAME, partition(None, isr=(), elr=(), last=()), around(frozenset()))
    assert unknown.remedy == "start brokers 1, 2 and 3"


def test_partition_whose_leader_is_about_to_change() -> None:
    found = diagnose(NAME, partition(1), around(frozenset({2, 3})))
    assert found.why == "its leader, broker 1, is down, and no other has been elected yet"
    found = diagnose(NAME, partition(None, isr=(2,)), around())
    assert found.why == "broker 2 can lead, but is not elected yet"


def test_failed_log_directory_is_named() -> None:
    found = diagnose(NAME, partition(None, isr=(2,), offline=(2,)), around())
    assert found.why == "the log directory of broker 2, which holds every acknowledged record, has failed"
    assert "`ottla brokers describe 2`" in found.remedy


def test_reassignment_is_no_damage() -> None:
    moving = PartitionReassignment((1, 2, 3), adding=(3,), removing=(1,))
    found = diagnose(NAME, partition(isr=(1, 2)), around()._replace(reassignment=moving))
    assert (found.state, found.why) == ("reassigning", "broker 3 is being added; broker 1 will be removed")
    stuck = diagnose(NAME, partition(isr=(1, 2)), around(frozenset({1, 2}))._replace(reassignment=moving))
    assert stuck.why.endswith("broker 1 will be removed; broker 3 is down")
    assert stuck.remedy == (
        "start broker 3, or stop the move with `ottla reassign cancel PLAN`, or all moves with `ottla reassign cancel --all`"
    )
    down = diagnose(NAME, partition(isr=(1,)), around(frozenset({1, 3}), min_isr=1)._replace(reassignment=moving))
    assert (down.state, down.remedy) == ("at-min-isr", "start broker 2")


def test_loss_of_an_unclean_election() -> None:
    assert loss(NAME, partition(None, isr=(), elr=(3,)), frozenset({1, 2})).startswith(
        "an unclean election makes broker 1 lead orders-0, and loses what was acknowledged"
    )
    assert loss(NAME, partition(None), frozenset()) == ""
    assert safe_leaders(partition(None, isr=(), elr=(3,))) == [3]
