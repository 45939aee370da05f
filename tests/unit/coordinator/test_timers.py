"""Deadlines by name: moved, cancelled, due in order."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.contract import Effects, Instant
from ottla.coordinator.timers import Action, Timers


def at(steady_ms: int) -> Instant:
    return Instant(0, steady_ms)


def naming(name: object) -> Action:
    return lambda now: Effects(orders=[name])


def due(timers: Timers, steady_ms: int) -> list[object]:
    names = []
    while (action := timers.pop_due(at(steady_ms))) is not None:
        names += action(at(steady_ms)).orders
    return names


def test_actions_are_due_in_order_of_deadline_then_of_setting() -> None:
    timers = Timers()
    for name, deadline_ms in (("b", 20), ("a", 10), ("c", 20)):
        timers.set(name, deadline_ms, naming(name))
    assert timers.next_deadline_ms == 10
    assert due(timers, 9) == []
    assert due(timers, 20) == ["a", "b", "c"]
    assert timers.next_deadline_ms is None


def test_setting_again_moves_a_deadline_and_cancelling_removes_it() -> None:
    timers = Timers()
    timers.set("a", 10, naming("a"))
    timers.set("a", 30, naming("a, later"))
    timers.set("b", 20, naming("b"))
    assert timers.deadline_of("a") == 30
    assert due(timers, 25) == ["b"]
    timers.cancel("a")
    assert "a" not in timers
    assert timers.deadline_of("a") is None
    assert due(timers, 99) == []


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.one_of(st.none(), st.integers(0, 50))), max_size=20), st.integers(0, 60)
)
def test_timers_match_a_plain_table_of_deadlines(changes: list[tuple[str, int | None]], now_ms: int) -> None:
    timers, table = Timers(), dict[str, int]()
    for name, deadline_ms in changes * 12:  # often enough to remove stale entries from the heap
        if deadline_ms is None:
            timers.cancel(name)
            table.pop(name, None)
        else:
            timers.set(name, deadline_ms, naming(name))
            table[name] = deadline_ms
        assert timers.next_deadline_ms == min(table.values(), default=None)
        assert len(timers) == len(table)
    assert sorted(map(str, due(timers, now_ms))) == sorted(name for name, deadline_ms in table.items() if deadline_ms <= now_ms)
    assert len(timers._heap) <= 2 * len("abcdefgh") + 65
