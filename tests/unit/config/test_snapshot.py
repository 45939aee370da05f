"""Immutable settings."""

from __future__ import annotations

import pytest

from ottla.config.snapshot import Snapshot


class Base(Snapshot):
    a: int
    __slots__ = tuple(__annotations__)


class Derived(Base):
    b: str
    __slots__ = tuple(__annotations__)


def test_attributes_of_all_classes_are_set() -> None:
    made = Derived({"a": 1, "b": "x", "unused": 2})
    assert (made.a, made.b) == (1, "x")
    assert Derived.attributes == ("a", "b")
    assert not hasattr(made, "__dict__")


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="b"):
        Derived({"a": 1})


def test_it_never_changes() -> None:
    made = Derived({"a": 1, "b": "x"})
    with pytest.raises(AttributeError, match="never changes"):
        made.a = 2


def test_a_changed_copy() -> None:
    made = Derived({"a": 1, "b": "x"})
    assert made.replaced(b="y") == Derived({"a": 1, "b": "y"})
    assert made.b == "x"
    with pytest.raises(AttributeError, match="Derived has no c"):
        made.replaced(c=1)


def test_it_compares_by_value_and_kind() -> None:
    assert Base({"a": 1}) == Base({"a": 1})
    assert Base({"a": 1}) != Base({"a": 2})
    assert Base({"a": 1}) != Derived({"a": 1, "b": ""})
