"""Records that come back other than they were sent."""

from types import SimpleNamespace
from typing import Any

import pytest
from ottla.cli.perf.round_trips import TripFailed, _check

HEADERS = [("h", b"1")]


def record(**changes: Any) -> Any:
    return SimpleNamespace(
        **({"topic": "t", "partition": 0, "offset": 7, "key": b"k", "value": b"v", "headers": HEADERS} | changes)
    )


def test_record_that_was_sent_passes() -> None:
    _check([record()], b"k", b"v", HEADERS)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ([], "did not arrive at the consumer within 60 s"),
        ([record(), record()], "2 records arrived where one was sent"),
        ([record(value=b"w")], "another record arrived than the one that was sent .offset 7 of t-0."),
        ([record(key=None)], "another record arrived"),
        ([record(headers=[])], "another record arrived"),
    ],
)
def test_anything_else_is_an_error_that_says_what_came(found: list[Any], fault: str) -> None:
    with pytest.raises(TripFailed, match=fault):
        _check(found, b"k", b"v", HEADERS)
