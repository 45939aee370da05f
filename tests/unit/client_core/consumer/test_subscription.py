"""A consumer's subscription: which calls go together, and what happens to positions when partitions come and go."""

import re

import pytest
from tests.support.machines.consumer_cluster import place

from ottla.client_core.consumer.settings import EARLIEST
from ottla.client_core.consumer.subscription import Mode, PartitionState, Phase, Position, Subscription
from ottla.errors import IllegalStateError, NetworkError


def buffered() -> PartitionState:
    """A partition at offset 5 that has fetched up to 9, from a follower, against leader epoch 3."""
    state = PartitionState(place(0))
    state.jump(Position(5, 2))
    state.fetch_position = Position(9, 2)
    state.received_bytes, state.consumed_bytes = 100, 40
    state.validated_epoch, state.preferred_node, state.not_before_ms = 3, 2, 700
    state.is_in_flight = True
    return state


def test_partitions_that_stay_keep_their_positions() -> None:
    subscription = Subscription()
    subscription.assign([place(0), place(1)])
    kept, gone = subscription.state(place(0)), subscription.state(place(1))
    kept.jump(Position(5))
    generations = kept.generation, gone.generation
    version = subscription.version
    subscription.assign([place(2), place(0)])
    assert list(subscription.partitions) == [place(2), place(0)]
    assert subscription.state(place(0)) is kept
    assert (kept.position, kept.generation) == (Position(5), generations[0])
    assert gone.generation > generations[1]  # answers for it are dropped
    assert subscription.version > version


def test_a_partition_that_comes_back_starts_over() -> None:
    subscription = Subscription()
    subscription.assign([place(0)])
    subscription.state(place(0)).jump(Position(5))
    subscription.assign([])
    subscription.assign([place(0)])
    assert (subscription.state(place(0)).phase, subscription.state(place(0)).position) == (Phase.NEW, None)


def test_assign_and_subscribe_are_not_mixed_without_unsubscribe() -> None:
    subscription = Subscription()
    subscription.subscribe(["t"])
    with pytest.raises(IllegalStateError, match=r"assign\(\) cannot be mixed with subscribe\(\)"):
        subscription.assign([place(0)])
    assert (subscription.mode, subscription.partitions) == (Mode.SUBSCRIBED, {})
    subscription.unsubscribe()
    subscription.assign([place(0)])
    with pytest.raises(IllegalStateError, match=r"subscribe\(\) cannot be mixed with assign\(\)"):
        subscription.subscribe(["t"])
    assert (subscription.mode, subscription.topics) == (Mode.ASSIGNED, frozenset())


def test_a_new_subscription_replaces_the_old_one_and_keeps_partitions() -> None:
    subscription = Subscription()
    pattern = re.compile("t.*")
    subscription.subscribe(["t"], pattern)
    subscription.set_partitions([place(0)])
    assert (subscription.topics, subscription.pattern) == (frozenset({"t"}), pattern)
    subscription.subscribe(["u", "v"])
    assert (subscription.topics, subscription.pattern) == (frozenset({"u", "v"}), None)
    assert list(subscription.partitions) == [place(0)]  # until the group has assigned others


def test_unsubscribe_leaves_nothing() -> None:
    subscription = Subscription()
    subscription.subscribe(["t"], re.compile("t"))
    subscription.set_partitions([place(0)])
    state = subscription.state(place(0))
    generation = state.generation
    subscription.unsubscribe()
    assert (subscription.mode, subscription.topics, subscription.pattern) == (Mode.NONE, frozenset(), None)
    assert subscription.partitions == {}
    assert state.generation > generation


def test_a_partition_that_is_not_assigned_has_no_state() -> None:
    subscription = Subscription()
    subscription.assign([place(0)])
    with pytest.raises(IllegalStateError, match="t-1 is not assigned to this consumer"):
        subscription.state(place(1))


def test_a_jump_drops_what_is_buffered_and_what_was_validated() -> None:
    state = buffered()
    generation = state.generation
    assert state.buffered_bytes == 60
    state.jump(Position(50))
    assert (state.position, state.fetch_position, state.phase) == (Position(50), Position(50), Phase.FETCH)
    assert (state.buffered_bytes, state.not_before_ms, state.preferred_node, state.validated_epoch) == (0, 0, -1, -1)
    assert (state.generation > generation, state.is_in_flight) == (True, False)
    state = buffered()
    state.jump(Position(50), is_validated=True)
    assert state.validated_epoch == 3


def test_a_refetch_starts_again_at_the_callers_position() -> None:
    state = buffered()
    generation = state.generation
    state.refetch()
    assert (state.position, state.fetch_position, state.buffered_bytes) == (Position(5, 2), Position(5, 2), 0)
    assert (state.phase, state.generation > generation) == (Phase.FETCH, True)


def test_a_failed_partition_keeps_its_error_and_position_until_a_seek() -> None:
    subscription = Subscription()
    subscription.assign([place(0), place(1)])
    state = subscription.state(place(0))
    state.jump(Position(5))
    state.fetch_position, state.received_bytes = Position(9), 10
    generation = state.generation
    error = NetworkError("a test")
    state.fail(error)
    assert subscription.errors() == [state]
    assert (state.buffered_bytes, state.generation > generation) == (0, True)
    assert (state.error, state.phase, state.position, state.fetch_position) == (error, Phase.FAILED, Position(5), Position(5))
    state.start_reset(EARLIEST)
    assert subscription.errors() == []
    assert (state.phase, state.reset, state.position) == (Phase.RESET, EARLIEST, None)
    assert state.fetch_position is None
