"""Snapshot: the base of classes that hold settings in attributes, are made whole, and never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class Snapshot:
    """Immutable values. A subclass annotates its attributes and sets `__slots__ = tuple(__annotations__)`.

    A plain class with slots instead of a dataclass: importing `dataclasses` takes longer than all tables of settings.
    """

    __slots__ = ()
    attributes: ClassVar[tuple[str, ...]] = ()
    """The names of all attributes, inherited ones first."""

    def __init_subclass__(cls) -> None:
        cls.attributes = (*cls.attributes, *cls.__dict__["__slots__"])

    def __init__(self, values: Mapping[str, Any]) -> None:
        for attribute in self.attributes:
            object.__setattr__(self, attribute, values[attribute])

    def replaced(self, **changes: Any) -> Self:
        """A copy in which the attributes `changes` have other values. Nothing is checked."""
        unknown = sorted(changes.keys() - set(self.attributes))
        if unknown:
            raise AttributeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        return type(self)({**{name: getattr(self, name) for name in self.attributes}, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a snapshot of settings never changes; make a new one")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.attributes)

    __hash__ = None  # type: ignore[assignment] # compares by value, and may hold mappings
