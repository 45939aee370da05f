"""Regular expressions of clients: RE2's, which match in time linear in the text, with bounds on what compiling them costs.

RE2 holds the interpreter lock while it compiles: 400 times `\\p{L}`, 2 KB, took 0.4 s and 8 MB. Here no expression costs more
than about 20 ms and `PROGRAM_BYTES_MAX`; beyond that it is refused as INVALID_REGULAR_EXPRESSION. Apache Kafka 4.3.0 compiles
all of them. Lists of a thousand names and a dozen Unicode classes fit. The last `KEPT` outcomes are kept, refusals too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

PRICE_MAX: Final = 32_000
"""About 20 ms, at 0.3 to 0.9 µs for a character, a repetition or a five-hundredth of a Unicode class."""
PROGRAM_BYTES_MAX: Final = 512 << 10
KEPT: Final = 100
_SHOWN_MAX = 200

_UNICODE_CLASS_PRICE = 500
_UNICODE_CLASS = re.compile(r"\\[pP]")
_REPETITION = re.compile(r"\{(\d{0,6}),?(\d{0,6})\}")


def compiled(expression: str) -> Any:
    """The compiled expression; INVALID_REGULAR_EXPRESSION if it is invalid or too expensive. Any thread."""
    outcome = _compiled(expression)
    if isinstance(outcome, str):
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, outcome)
    return outcome


def price(expression: str) -> int:
    """What it costs to compile, roughly."""
    repetitions = sum(int(high or low or 0) for low, high in _REPETITION.findall(expression))
    return len(expression) + repetitions + _UNICODE_CLASS_PRICE * len(_UNICODE_CLASS.findall(expression))


@lru_cache(KEPT)
def _compiled(expression: str) -> Any:
    """The compiled expression, or why there is none."""
    shown = repr(expression if len(expression) <= _SHOWN_MAX else f"{expression[:_SHOWN_MAX]}…")
    if len(expression) > PRICE_MAX or price(expression) > PRICE_MAX:
        return _too_large(shown)
    import re2  # imported late: few groups have expressions

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # without captures, which are unused, a match takes a hundredth of the time or less
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(expression, options)
    except re2.error as fault:
        reason = fault.args[0] if fault.args else fault
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        if "too large" in text:
            return _too_large(shown)
        return f"{shown} is no regular expression of RE2 ({text[:_SHOWN_MAX]}): correct it"


def _too_large(shown: str) -> str:
    return (
        f"the regular expression {shown} is too expensive to compile: shorten it, use fewer repetitions and Unicode classes "
        "(names of topics have ASCII letters only), or name the topics"
    )
