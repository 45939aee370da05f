"""`seconds`: checks the `timeout` arguments of producers and consumers. They are in seconds; settings are in milliseconds."""

from __future__ import annotations

import logging
from math import inf, isnan
from typing import Any, Final

logger = logging.getLogger("ottla.client")

MILLISECONDS_FROM: Final = 1_000
"""A timeout of so many seconds, a quarter of an hour, was probably meant to be milliseconds."""
_LONGEST_S: Final = 1e8
"""Three years: longer ones overflow in clocks and locks."""
_warned: set[str] = set()
"""The calls that a warning was logged for: one each."""


def seconds(call: str, given: Any) -> Any:
    """The `timeout` that `call` was given, a number or None; or a `TypeError` or `ValueError` that says what is expected."""
    if given is None or ((type(given) is float or type(given) is int) and 0 <= given < MILLISECONDS_FROM):
        return given
    if isinstance(given, bool) or not (isinstance(given, int | float) or _is_real(given)):
        hint = "; pass its total_seconds()" if hasattr(given, "total_seconds") else ""
        raise TypeError(f"{call}(timeout={given!r}): a timeout is a number of seconds, or None{hint}")
    number = float(given)
    if isnan(number) or number < 0:
        raise ValueError(f"{call}(timeout={given!r}): a timeout is a number of seconds from 0 on, or None")
    if MILLISECONDS_FROM <= number < inf and call not in _warned:
        _warned.add(call)
        logger.warning(
            "%s(timeout=%r) waits for up to %.0f minutes, because timeouts are in seconds. If milliseconds were meant, pass %g",
            call,
            given,
            number / 60,
            number / 1000,
        )
    return min(number, _LONGEST_S)


def _is_real(given: object) -> bool:
    """Whether this is another kind of number, such as numpy's."""
    from numbers import Real  # late: every producer loads this module

    return isinstance(given, Real)
