"""What the reading side hands out, and what a commit of it covers."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.machines.consumer_cluster import FakePartition, place

from ottla.client.consumer.reader import RecordReader
from ottla.client_core.consumer.fetched import Fetched, end_of_batches
from ottla.client_core.consumer.subscription import Position, Subscription
from ottla.client_core.metrics.consumer import ConsumerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import CorruptBatchError


class World:
    """Two partitions with five records each, all fetched, in batches of one."""

    def __init__(self) -> None:
        self.subscription = Subscription()
        self.subscription.assign([place(0), place(1)])
        registry = MetricsRegistry("consumer")
        self.fetcher: Any = SimpleNamespace(ready=deque(), metrics=ConsumerMetrics(registry), end_offset=lambda state: 5)
        self.metrics = registry
        self.wakes = 0
        self.reader = RecordReader(self.subscription, self.fetcher, self.wake, None, None)
        for partition in range(2):
            self.fetch(partition)

    def wake(self) -> None:
        self.wakes += 1

    def fetch(self, partition: int, damaged: int | None = None) -> None:
        log = FakePartition()
        for index in range(5):
            log.append([b"%d" % index])
        data = bytearray(log.read(0, 1 << 30))
        if damaged is not None:
            data[len(data) // 5 * damaged + 66] ^= 1
        state = self.subscription.state(place(partition))
        state.jump(Position(0))
        frame = memoryview(data)
        state.received_bytes = end_of_batches(frame)[0]
        self.fetcher.ready.append(Fetched(state, frame, len(frame), 0, None))

    def take(self, limit: int = 100) -> list[tuple[int, int]]:
        return [(record.partition, record.offset) for record in self.reader.take(limit)]

    def iterate(self, count: int) -> None:
        """As the faces do: a poll's records, handed out one by one."""
        self.reader.pending, self.reader.step = self.reader.take(100), count


def offsets(world: World, **options: bool) -> list[int]:
    return [value.offset for value in world.reader.offsets(**options).values()]


def test_records_come_partition_by_partition_up_to_the_limit() -> None:
    world = World()
    assert world.take(7) == [(0, offset) for offset in range(5)] + [(1, 0), (1, 1)]
    assert world.take() == [(1, 2), (1, 3), (1, 4)]
    assert world.take() == []
    measured = world.metrics.as_dict(0)["consumer-fetch-manager-metrics"]
    assert (measured["records-consumed-total"], measured["records-lag-max"]) == (10, 3)


def test_batches_have_a_list_for_each_partition() -> None:
    world = World()
    found = world.reader.take_batches(7)
    assert {each: len(records) for each, records in found.items()} == {place(0): 5, place(1): 2}
    world.reader.pending, world.reader.step = world.reader.take(2), 1
    assert {each: len(records) for each, records in world.reader.take_batches(9).items()} == {place(1): 1}


def test_the_loop_is_woken_once_when_an_answer_was_read() -> None:
    world = World()
    world.fetcher.ready[1].is_last = True
    world.take(9)
    assert world.wakes == 0
    world.take(1)
    assert world.wakes == 1
    world.take(2)
    assert world.wakes == 1


@pytest.mark.parametrize("call", ["take", "take_batches", "take_views"])
def test_answers_that_come_while_others_are_read_wait_for_the_next_call(call: str) -> None:
    world = World()
    wake = world.wake

    def fetch_more() -> None:
        wake()
        if world.wakes < 4:
            world.fetch(0)
            world.fetcher.ready[-1].is_last = True

    world.reader._wake = fetch_more
    world.fetcher.ready[1].is_last = True
    found: Any = getattr(world.reader, call)(*([] if call == "take_views" else [1000]))
    assert world.wakes == 1
    assert len(found) == (10 if call == "take" else 2)
    assert len(world.fetcher.ready) == 1


def test_paused_partitions_keep_their_place() -> None:
    world = World()
    world.subscription.state(place(0)).is_paused = True
    assert world.take(2) == [(1, 0), (1, 1)]
    world.subscription.state(place(0)).is_paused = False
    assert world.take(6) == [(0, offset) for offset in range(5)] + [(1, 2)]


def test_answers_from_before_a_jump_are_dropped() -> None:
    world = World()
    world.subscription.state(place(0)).jump(Position(3))
    assert world.take() == [(1, offset) for offset in range(5)]
    assert len(world.fetcher.ready) == 0


def test_a_commit_covers_what_was_handed_out() -> None:
    world = World()
    world.take(7)
    assert world.reader.offsets() == {place(0): OffsetAndMetadata(5, "", 0), place(1): OffsetAndMetadata(2, "", 0)}
    assert offsets(world, is_step_done=False) == [0, 0]
    world.reader.begin_step()
    world.take(1)
    assert offsets(world, is_step_done=False) == [5, 2]


def test_an_iteration_covers_only_the_records_it_has_given() -> None:
    world = World()
    world.iterate(2)
    assert offsets(world) == [2, 0]
    assert offsets(world, is_step_done=False) == [1, 0]
    assert world.reader.position(place(0)) == Position(2)
    assert world.take(2) == [(0, 2), (0, 3)]
    assert offsets(world) == [4, 0]


def test_a_step_that_never_reached_the_caller_is_undone() -> None:
    world = World()
    world.take(2)
    world.reader.begin_step()
    world.take(5)
    world.reader.undo_step()
    assert [state.position for state in world.subscription.partitions.values()] == [Position(2, 0), Position(0)]
    assert world.take() == []  # it is fetched again


def test_what_a_poll_took_of_an_iteration_is_not_done_until_the_next_step() -> None:
    world = World()
    world.iterate(2)
    world.reader.begin_step()
    assert world.take(2) == [(0, 2), (0, 3)]
    assert offsets(world) == [4, 0]
    assert offsets(world, is_step_done=False) == [2, 0]
    world.reader.begin_step()
    assert world.take(6) == [(0, 4), *[(1, offset) for offset in range(5)]]
    assert offsets(world, is_step_done=False) == [4, 0]


def test_undoing_a_poll_gives_back_what_it_took_of_an_iteration() -> None:
    world = World()
    world.iterate(2)
    world.reader.begin_step()
    world.take(2)
    world.reader.undo_step()
    assert world.reader.pending == []
    assert offsets(world) == [2, 0]
    assert not world.reader.has_step


def test_undoing_a_refill_gives_back_all_of_it() -> None:
    world = World()
    world.reader.begin_step()
    assert world.reader.refill(7)
    world.reader.undo_step()
    assert (world.reader.pending, offsets(world)) == ([], [0, 0])


def test_a_seek_is_not_undone() -> None:
    world = World()
    world.take(7)
    world.reader.drop_pending({place(1)})
    world.subscription.state(place(1)).jump(Position(4))
    world.reader.undo_step()
    assert offsets(world) == [0, 4]


def test_the_record_in_hand_is_not_done_when_others_are_dropped() -> None:
    world = World()
    world.iterate(2)
    world.reader.drop_pending({place(1)})
    assert offsets(world, is_step_done=False)[0] == 1
    assert offsets(world)[0] == 2


def test_rewinding_fetches_the_rest_of_an_iteration_again() -> None:
    world = World()
    world.iterate(2)
    world.reader.rewind()
    assert [state.fetch_position for state in world.subscription.partitions.values()] == [Position(2), Position(0)]
    assert world.take() == []


def test_the_rest_of_an_iteration_can_be_dropped_by_partition() -> None:
    world = World()
    world.iterate(2)
    world.reader.drop_pending({place(0)})
    assert world.take() == [(1, offset) for offset in range(5)]
    world.iterate(0)
    world.reader.drop_pending()
    assert world.take() == []


def test_damage_is_raised_after_everything_before_it() -> None:
    world = World()
    world.fetcher.ready.clear()
    world.fetch(0, damaged=3)
    world.fetch(1)
    assert world.take() == [(0, 0), (0, 1), (0, 2)]
    with pytest.raises(CorruptBatchError):
        world.take()
    with pytest.raises(CorruptBatchError):
        world.reader.take_batches(5)
    with pytest.raises(CorruptBatchError):
        world.reader.take_views()
    world.subscription.state(place(0)).jump(Position(4))
    assert world.take() == [(1, offset) for offset in range(5)]


def test_views_are_whole_batches() -> None:
    world = World()
    world.take(2)
    found = world.reader.take_views()
    assert {each: (views.first, len(views.batches)) for each, views in found.items()} == {place(0): (2, 3), place(1): (0, 5)}
    assert offsets(world) == [5, 5]
