"""The machine of a replica fetcher: its requests, its answers, and that a follower's log becomes its leader's."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.replication.fetch_machine import Append, FetchMachine, Limits, Place, Reset, Throttle, Truncate
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

TOPIC = Uuid(b"t" * 16)
LIMITS = Limits(500, 1, 1000, 100, 1.0)
SESSION = 7


def name(index: int) -> TopicPartition:
    return TopicPartition("t", index)


def machine_of(*indexes: int, epoch: int = 3) -> FetchMachine:
    machine = FetchMachine(1)
    for index in indexes:
        machine.follow((TOPIC, index), name(index), epoch, Place(5, 2, 0))
    return machine


def asked(request: FetchRequest | None) -> dict[int, FetchPartition]:
    return {} if request is None else {each.partition: each for topic in request.topics for each in topic.partitions}


def forgotten(request: FetchRequest | None) -> list[int]:
    return [] if request is None else [index for topic in request.forgotten_topics_data for index in topic.partitions]


def reply(*datas: PartitionData, session_id: int = SESSION) -> FetchResponse:
    return FetchResponse(session_id=session_id, responses=[FetchableTopicResponse(topic_id=TOPIC, partitions=list(datas))])


def next_request(machine: FetchMachine, now_s: float = 0.0) -> FetchRequest | None:
    return machine.request(9, LIMITS, now_s)


def test_partition_with_unflushed_records_is_asked_for_after_the_flush() -> None:
    machine = machine_of(0, 1)
    next_request(machine)
    machine.answered(reply(), 0.0, 1.0)
    unflushed = Place(6, 3, 0)
    assert machine.follow((TOPIC, 0), name(0), 4, unflushed, is_flushed=False)
    assert not machine.follow((TOPIC, 0), name(0), 4, unflushed, is_flushed=False)
    request = next_request(machine)
    assert (asked(request), forgotten(request)) == ({}, [0]), "the session has the place of the epoch before"
    machine.done((TOPIC, 0), 3, unflushed)
    assert asked(next_request(machine)) == {}
    machine.done((TOPIC, 0), 4, unflushed)
    assert asked(next_request(machine))[0].fetch_offset == 6


def test_first_request_is_full_and_says_who_asks() -> None:
    request = next_request(machine_of(0, 1))
    assert request is not None
    assert request.replica_state is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (1, 9)
    assert (request.session_id, request.session_epoch, sorted(asked(request))) == (0, 0, [0, 1])
    one = asked(request)[0]
    assert (one.current_leader_epoch, one.fetch_offset, one.last_fetched_epoch, one.log_start_offset) == (3, 5, 2, 0)


def test_later_requests_name_only_what_changed() -> None:
    machine = machine_of(0, 1)
    next_request(machine)
    (action,) = machine.answered(reply(PartitionData(partition_index=0, records=b"x")), 0.0, 1.0)
    assert isinstance(action, Append)
    machine.done(action.key, 3, Place(6, 3, 0))
    request = next_request(machine)
    assert request is not None
    assert (request.session_id, request.session_epoch) == (SESSION, 1)
    assert {index: each.fetch_offset for index, each in asked(request).items()} == {0: 6}
    assert machine.answered(reply(), 0.0, 1.0) == []
    assert asked(next_request(machine)) == {}, "an idle session's request names nothing"


def test_lag_is_what_the_log_lacks_of_the_leaders_high_watermark() -> None:
    machine = machine_of(0, 1)
    assert machine.lag_max == 0, "nothing is known yet"
    next_request(machine)
    actions = machine.answered(
        reply(PartitionData(partition_index=0, high_watermark=9), PartitionData(partition_index=1, high_watermark=5)), 0.0, 1.0
    )
    assert machine.lag_max == 4
    machine.done(actions[0].key, 3, Place(8, 3, 0))
    assert machine.lag_max == 1
    machine.unfollow((TOPIC, 0))
    assert machine.lag_max == 0


def throttle(allowance_bytes: int, until_s: float = 1.0) -> Throttle:
    """Partition 2 is not throttled."""
    return Throttle(allowance_bytes, 30, lambda each: each.partition != 2, until_s)


def sizes(request: FetchRequest | None) -> dict[int, int]:
    return {index: each.partition_max_bytes for index, each in asked(request).items()}


def test_throttled_partitions_are_fetched_in_portions_until_they_are_in_sync() -> None:
    machine = machine_of(0, 1, 2)
    machine.throttle(throttle(60), 0.0)
    assert sizes(next_request(machine)) == {0: 30, 1: 30, 2: 100}
    caught_up = PartitionData(partition_index=0, high_watermark=5)
    behind = PartitionData(partition_index=1, high_watermark=9)
    for action in machine.answered(reply(caught_up, behind), 0.0, 1.0):
        machine.done(action.key, 3, Place(5, 2, 0))
    machine.throttle(throttle(60), 0.0)
    assert sizes(next_request(machine)) == {0: 100}
    machine.end_throttle()
    assert sizes(next_request(machine)) == {1: 100}


def test_allowance_for_fewer_throttled_partitions_is_used_in_turns() -> None:
    machine, turns = machine_of(0, 1, 2, 3), []
    for now_s in range(6):
        machine.throttle(throttle(31, now_s + 1), float(now_s))
        next_request(machine, now_s)
        turns.append(sorted(machine.fetched & {(TOPIC, 0), (TOPIC, 1), (TOPIC, 3)}))
        machine.answered(reply(), 0.0, 1.0)
    assert [len(each) for each in turns] == [2] * 6
    assert sorted(key for each in turns[:3] for key in each) == sorted(2 * [(TOPIC, 0), (TOPIC, 1), (TOPIC, 3)])


def test_without_an_allowance_throttled_partitions_wait_and_those_in_sync_do_not() -> None:
    machine = machine_of(0, 1, 2)
    next_request(machine)
    behind, in_sync = PartitionData(partition_index=0, high_watermark=9), PartitionData(partition_index=1, high_watermark=5)
    for action in machine.answered(reply(behind, in_sync), 0.0, 1.0):
        machine.done(action.key, 3, Place(5, 2, 0))
    machine.throttle(throttle(0), 0.0)
    request = next_request(machine)
    assert (asked(request), forgotten(request), machine.next_due_s) == ({}, [0], 1.0)
    machine.answered(reply(), 0.0, 1.0)
    machine.throttle(throttle(0, 2.0), 1.0)
    assert (asked(next_request(machine, 1.0)), machine.next_due_s) == ({}, 2.0), "still without one"
    machine.answered(reply(), 0.0, 1.0)
    machine.throttle(throttle(1, 3.0), 2.0)
    assert sizes(next_request(machine, 2.0)) == {0: 30}


def test_partition_with_an_action_under_way_is_in_no_request() -> None:
    machine = machine_of(0, 1)
    next_request(machine)
    diverging = PartitionData(partition_index=0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=4))
    assert machine.answered(reply(diverging), 0.0, 1.0) == [Truncate((TOPIC, 0), name(0), 3, 1, 4)]
    request = next_request(machine)
    assert (asked(request), forgotten(request)) == ({}, [])
    machine.done((TOPIC, 0), 3, Place(4, 1, 0))
    machine.answered(reply(), 0.0, 1.0)
    assert asked(next_request(machine))[0].fetch_offset == 4


def test_failed_partition_is_forgotten_and_comes_back_after_a_pause_that_doubles() -> None:
    machine = machine_of(0, 1)
    pauses = []
    now_s = 0.0
    for _ in range(6):
        next_request(machine, now_s)
        failed = PartitionData(partition_index=0, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
        assert machine.answered(reply(failed), now_s, 1.0) == []
        assert forgotten(next_request(machine, now_s)) == [0]
        machine.answered(reply(), now_s, 1.0)
        due_s = machine.next_due_s
        assert due_s is not None
        pauses.append(round(due_s - now_s, 3))
        now_s = due_s
        assert 0 not in asked(next_request(machine, now_s - 0.001))
        machine.answered(reply(), now_s, 1.0)
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0]


def test_offset_outside_the_leaders_log_asks_for_a_reset() -> None:
    machine = machine_of(0)
    next_request(machine)
    failed = PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert machine.answered(reply(failed), 0.0, 1.0) == [Reset((TOPIC, 0), name(0), 3)]


def test_answer_to_an_earlier_leader_epoch_is_ignored() -> None:
    machine = machine_of(0)
    next_request(machine)
    machine.follow((TOPIC, 0), name(0), 4, Place(5, 2, 0))
    assert machine.answered(reply(PartitionData(partition_index=0, records=b"x")), 0.0, 1.0) == []
    assert asked(next_request(machine))[0].current_leader_epoch == 4


def test_older_leader_epoch_is_not_followed() -> None:
    machine = machine_of(0, epoch=4)
    machine.follow((TOPIC, 0), name(0), 3, Place(0, -1, 0))
    assert asked(next_request(machine))[0].current_leader_epoch == 4


def test_unfollowed_partition_is_forgotten_and_its_answer_ignored() -> None:
    machine = machine_of(0, 1)
    next_request(machine)
    machine.answered(reply(), 0.0, 1.0)
    next_request(machine)
    machine.unfollow((TOPIC, 0))
    assert machine.answered(reply(PartitionData(partition_index=0, records=b"x")), 0.0, 1.0) == []
    assert forgotten(next_request(machine)) == [0]


def test_lost_session_begins_with_a_full_request() -> None:
    machine = machine_of(0, 1)
    next_request(machine)
    machine.answered(reply(), 0.0, 1.0)
    next_request(machine)
    machine.answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), 0.0, 1.0)
    request = next_request(machine)
    assert request is not None
    assert (request.session_id, request.session_epoch, sorted(asked(request))) == (0, 0, [0, 1])
    machine.failed()
    assert sorted(asked(next_request(machine))) == [0, 1]


def test_nothing_to_fetch_gives_no_request() -> None:
    machine = machine_of(0)
    next_request(machine)
    machine.unfollow((TOPIC, 0))
    machine.answered(reply(), 0.0, 1.0)
    assert next_request(machine) is None
    assert machine.next_due_s is None


# A follower of a leader that changes


Records = list[tuple[int, int]]
"""A log: per offset the epoch and a value."""


def epochs_of(log: Records) -> dict[int, int]:
    """Epoch → end offset."""
    return {epoch: offset + 1 for offset, (epoch, _) in enumerate(log)}


def end_of_epoch(log: Records, epoch: int) -> tuple[int, int]:
    """The largest epoch of `log` up to `epoch`, and its end offset; (epoch, 0) if there is none."""
    ends = {each: end for each, end in epochs_of(log).items() if each <= epoch}
    found = max(ends, default=None)
    return (epoch, 0) if found is None else (found, ends[found])


@dataclass
class Story:
    """One follower, and logs of leaders in turn; `choices` decides what happens next."""

    choices: list[int]
    leader: Records = field(default_factory=list)
    follower: Records = field(default_factory=list)
    epoch: int = 0
    machine: FetchMachine = field(default_factory=lambda: FetchMachine(1))
    session: dict[int, FetchPartition] = field(default_factory=dict)
    acknowledged: int = 0

    def place(self) -> Place:
        return Place(len(self.follower), self.follower[-1][0] if self.follower else -1, 0)

    def new_leader(self, keep: int) -> None:
        """A replica leads that has the first `keep` records of the last leader, but everything that was acknowledged."""
        self.epoch += 1
        del self.leader[max(keep, self.acknowledged) :]
        self.session.clear()
        self.machine.failed()
        self.machine.follow((TOPIC, 0), name(0), self.epoch, self.place())

    def produce(self, value: int) -> None:
        self.leader.append((self.epoch, value))

    def leads_itself(self, value: int) -> None:
        """The follower leads for one epoch, and writes what nobody else gets. It has all that was acknowledged."""
        self.epoch += 1
        self.follower.append((self.epoch, value))
        self.new_leader(len(self.leader))

    def round(self, is_lost: bool, now_s: float) -> None:
        """One request and its answer, which may get lost."""
        request = self.machine.request(1, LIMITS, now_s)
        if request is None:
            return
        if request.session_epoch == 0:
            self.session.clear()
        self.session.update(asked(request))
        for index in forgotten(request):
            self.session.pop(index)
        datas = [self.answer(each) for each in self.session.values()]
        if is_lost:
            self.machine.failed()
            return
        for action in self.machine.answered(reply(*datas), now_s, 1.0):
            self.carry_out(action)

    def answer(self, wanted: FetchPartition) -> PartitionData:
        data = PartitionData(partition_index=0)
        if wanted.current_leader_epoch != self.epoch:
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH
            return data
        offset = wanted.fetch_offset
        epoch, end = end_of_epoch(self.leader, wanted.last_fetched_epoch)
        if wanted.last_fetched_epoch >= 0 and (epoch < wanted.last_fetched_epoch or end < offset):
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
            return data
        assert self.follower[:offset] == self.leader[:offset], "a fetch acknowledges everything below its offset"
        self.acknowledged = max(self.acknowledged, offset)
        data.records = bytes(value for _, value in self.leader[offset : offset + 2])
        return data

    def carry_out(self, action: object) -> None:
        if isinstance(action, Append):
            for _ in action.data.records or b"":
                self.follower.append(self.leader[len(self.follower)])
        else:
            assert isinstance(action, Truncate), action
            mine = end_of_epoch(self.follower, action.epoch)[1]
            del self.follower[min(action.end_offset, mine) :]
        self.machine.done((TOPIC, 0), self.epoch, self.place())


@given(st.lists(st.tuples(st.sampled_from("pppprrrrlnf"), st.integers(0, 9)), max_size=60))
def test_followers_log_becomes_its_leaders(events: list[tuple[str, int]]) -> None:
    story = Story([])
    story.new_leader(0)
    now_s = 0.0
    for kind, number in events:
        now_s += 0.01
        if kind == "p":
            story.produce(number)
        elif kind == "n":
            story.new_leader(len(story.leader) - number)
        elif kind == "f":
            story.leads_itself(number)
        else:
            story.round(kind == "l", now_s)
    for _ in range(len(story.leader) + 3 * story.epoch + 10):
        now_s += 2
        story.round(False, now_s)
    assert story.follower == story.leader
