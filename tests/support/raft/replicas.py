"""Single replicas for tests: a voter of three with a log, and requests to it."""

from typing import Any

from tests.support.raft.memory_log import Entry, MemoryLog

from ottla.ids import Uuid
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Inbound, Replica
from ottla.raft.roles.leader import Leader
from ottla.raft.settings import RaftSettings
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, VoterSet, static_voters
from ottla.wire.messages.vote import VoteResponse, VoteResponsePartitionData, VoteResponseTopicData

CLUSTER = "cluster"
THREE = static_voters([(1, "h1", 1), (2, "h2", 2), (3, "h3", 3)], "C")
NEWEST = {1: 18, 52: 2, 53: 1, 54: 1, 59: 1}


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([node_id]) * 16))


def replica_of_three(
    node_id: int = 1,
    epochs: tuple[int, ...] = (),
    election: ElectionState | None = None,
    voters: VoterSet = THREE,
    **settings: Any,
) -> Replica:
    """A replica that has started at 0 ms, with one durable record of each of `epochs`."""
    log = MemoryLog()
    log.entries = [Entry(epoch, number) for number, epoch in enumerate(epochs)]
    options = RaftSettings(CLUSTER, "C", {"C": (f"h{node_id}", node_id)}, (("h9", 9),), **settings)
    replica = Replica(key(node_id), options, VoterHistory(voters), log, lambda limit: 0, election)
    carry_out(replica, replica.start(0))
    replica.synced(log.end_offset, 0)
    return replica


def carry_out(replica: Replica, effects: list[fx.Effect], now_ms: int = 0) -> list[fx.Effect]:
    """Do to the log what a host would; returns all effects, those that follow included."""
    log = replica.log
    assert isinstance(log, MemoryLog)
    is_changed = False
    for effect in effects:
        if isinstance(effect, fx.AppendControls):
            log.entries += [Entry(effect.epoch, control) for control in effect.controls]
        elif isinstance(effect, fx.AppendFetched):
            log.entries += effect.data
        elif isinstance(effect, fx.Truncate):
            log.truncate(effect.offset)
        else:
            continue
        is_changed = True
    return [*effects, *carry_out(replica, replica.log_changed(now_ms), now_ms)] if is_changed else effects


def ask(replica: Replica, message: Any, version: int | None = None, now_ms: int = 0) -> list[fx.Effect]:
    """Give the replica a request that came through listener C; its token is "asked"."""
    version = NEWEST[message.KEY] if version is None else version
    return carry_out(replica, replica.asked(Inbound("asked", message, version, "C"), now_ms), now_ms)


def answer_in(effects: list[fx.Effect]) -> Any:
    """The one answer among effects."""
    (found,) = [each.message for each in effects if isinstance(each, fx.Answer | fx.AnswerWithRecords | fx.AnswerWithSnapshot)]
    return found


def sent_in(effects: list[fx.Effect]) -> list[fx.Send]:
    return [each for each in effects if isinstance(each, fx.Send)]


def vote_answer(epoch: int, granted: bool = True, leader_id: int = -1) -> VoteResponse:
    partition = VoteResponsePartitionData(leader_id=leader_id, leader_epoch=epoch, vote_granted=granted)
    return VoteResponse(topics=[VoteResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])])


def elected(node_id: int = 1, epochs: tuple[int, ...] = (), **options: Any) -> Replica:
    """A replica that leads: voter 2 (or 1) has voted for it."""
    replica = replica_of_three(node_id, epochs, **options)
    now_ms = 5000
    for _ in range(2):  # the pre-vote, then the vote
        voter_id, sent = next(iter(replica.connections._in_flight.items()))
        answer = vote_answer(sent.message.topics[0].partitions[0].replica_epoch)  # type: ignore[attr-defined]
        carry_out(replica, replica.received(voter_id, sent.correlation, answer, now_ms), now_ms)
    assert isinstance(replica.role, Leader)
    return replica
