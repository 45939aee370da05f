"""Groups that are named more than once in a request that describes them."""

from types import SimpleNamespace

from ottla.broker.handlers.groups.group_calls import REPEATED_MEMBERS_MAX, as_often_as_named


def test_a_group_named_twice_is_listed_twice() -> None:
    a, b = SimpleNamespace(members=[1]), SimpleNamespace(members=[])
    assert as_often_as_named(["a", "b", "a"], {"a": a, "b": b}) == [a, b, a]


def test_large_response_lists_every_group_at_least_once() -> None:
    large, small = SimpleNamespace(members=list(range(999))), SimpleNamespace(members=[])
    answers = as_often_as_named(["large"] * 20_000 + ["small"], {"large": large, "small": small})
    assert answers.count(large) == 1 + REPEATED_MEMBERS_MAX // 1000
    assert answers[-1] is small
