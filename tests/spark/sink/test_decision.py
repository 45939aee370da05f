"""Decisions as records."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.sink.protocol import Decision, HeldTransaction, State, UnknownDecision, decode, encode

NUMBERS = st.integers(0, 2**62)
HELD = st.builds(HeldTransaction, st.text(max_size=20), NUMBERS, st.integers(0, 32767), NUMBERS, NUMBERS)
DECISIONS = st.builds(
    Decision,
    st.just("q"),
    NUMBERS,
    st.text(max_size=10),
    st.sampled_from(State),
    st.lists(HELD, max_size=3).map(tuple),
    NUMBERS,
    st.text(max_size=10),
)


@given(DECISIONS)
def test_a_decision_is_read_as_it_was_written(decision: Decision) -> None:
    assert decode("q", encode(decision)) == decision


@given(st.binary(max_size=40))
def test_other_bytes_are_a_typed_error(value: bytes) -> None:
    with pytest.raises(UnknownDecision, match="query q"):
        decode("q", value)


def test_a_newer_version_is_named() -> None:
    with pytest.raises(UnknownDecision, match="version 2: a newer ottla wrote it"):
        decode("q", json.dumps({"version": 2}).encode())
