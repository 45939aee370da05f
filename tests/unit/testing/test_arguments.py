"""Mistaken arguments of the helpers are `TypeError`s that name the argument."""

from collections.abc import Callable

import pytest

from ottla.testing import arguments


@pytest.mark.parametrize(
    ("check", "named"),
    [
        (lambda: arguments.check_topic(b"orders"), "topic="),
        (lambda: arguments.check_new_topic("orders", "3", {}), "partitions="),
        (lambda: arguments.check_new_topic("orders", True, {}), "partitions="),
        (lambda: arguments.check_new_topic("orders", 3, [("retention.ms", 1)]), "config="),
        (lambda: arguments.check_awaited("1", 10), "count="),
        (lambda: arguments.check_awaited(1, None), "timeout="),
        (lambda: arguments.check_place("0", [], None), "partition="),
        (lambda: arguments.check_place(None, [("name", "text")], None), "headers="),
        (lambda: arguments.check_place(None, {"name": b"value"}, None), "headers="),
        (lambda: arguments.check_place(None, [], 1.5), "timestamp="),
        (lambda: arguments.as_bytes("value", 5), "value="),
    ],
)
def test_a_wrong_type_is_refused_by_name(check: Callable[[], object], named: str) -> None:
    with pytest.raises(TypeError, match=f"^{named}"):
        check()


def test_right_types_pass() -> None:
    arguments.check_new_topic("orders", 3, {"retention.ms": 1})
    arguments.check_awaited(1, 0.5)
    arguments.check_place(0, [("name", b"value"), ("empty", None)], 1)
    arguments.check_place(None, (), None)
    assert [arguments.as_bytes("key", text) for text in ("a", b"b", None)] == [b"a", b"b", None]
