"""`Results`: what a call about many items returns: a value or an error for each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from ottla.errors import KafkaError, UnknownServerError
from ottla.ids import Uuid, uuid_text

K = TypeVar("K")
V = TypeVar("V")

_logger = logging.getLogger("ottla.admin")


class Results(Mapping[K, V], Generic[K, V]):
    """A mapping from each item of the call to its value. Looking up an item that failed raises its error.

    Items are in the order of the call. `errors` and `values_found` never raise. Results that are dropped with errors that the
    program never looked at are logged as a warning, so that a refused change does not go unnoticed.
    """

    __slots__ = ("_errors", "_is_looked_at", "_items")

    def __init__(self, items: Mapping[K, V | KafkaError]) -> None:
        self._items = dict(items)
        self._errors = {key: value for key, value in self._items.items() if isinstance(value, KafkaError)}
        self._is_looked_at = not self._errors

    def __getitem__(self, key: K) -> V:
        value = self._items[key]
        if isinstance(value, KafkaError):
            self._is_looked_at = True
            raise value
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __repr__(self) -> str:
        self._is_looked_at = True
        return f"Results({{{', '.join(f'{_shown(key)}: {value!r}' for key, value in self._items.items())}}})"

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The error of each item that failed."""
        self._is_looked_at = True
        return dict(self._errors)

    @property
    def values_found(self) -> dict[K, V]:
        """The value of each item that did not fail."""
        return {key: value for key, value in self._items.items() if not isinstance(value, KafkaError)}

    def raise_first(self) -> Results[K, V]:
        """Raise the error of the first item that failed; return these results if none did."""
        self._is_looked_at = True
        for error in self._errors.values():
            raise error
        return self

    def __del__(self) -> None:
        if not self._is_looked_at:
            key, error = next(iter(self._errors.items()))
            more = f" (and {len(self._errors) - 1} more)" if len(self._errors) > 1 else ""
            _logger.warning(
                "the error of %s was never looked at: %s%s. Call raise_first() on the results", _shown(key), error, more
            )


def results_for(items: Iterable[K], answers: Mapping[K, V | KafkaError]) -> Results[K, V]:
    """The answers in the order of `items`. An item that the broker's response left out gets an error that says so."""
    return Results({item: answers[item] if item in answers else missing(item) for item in items})


def missing(item: object) -> KafkaError:
    """The error of an item that is not in the broker's response."""
    return UnknownServerError(f"the broker's response has no result for {_shown(item)}: try again")


def _shown(item: object) -> str:
    """An item in texts: a topic id as Kafka's tools print it."""
    return uuid_text(Uuid(item)) if isinstance(item, bytes) and len(item) == 16 else repr(item)
