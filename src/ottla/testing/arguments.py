"""Checks the arguments of the helpers. A mistake is a `TypeError` that names the argument, raised in the test's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

Headers = Sequence[tuple[str, bytes | None]]
Text = bytes | str | None
"""A key or value; text is written as UTF-8."""


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """`TypeError` if the argument `name` has another type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: give {wanted}")


def check_topic(name: str) -> None:
    check_kind("topic", name, str, "a topic's name")


def check_new_topic(name: str, partitions: int, config: Mapping[str, object], replication_factor: int | None = None) -> None:
    check_topic(name)
    check_kind("partitions", partitions, int, "a number of partitions")
    check_kind("replication_factor", replication_factor, (int, type(None)), "a number of replicas, or None for the default")
    check_kind("config", config, Mapping, "a dict of topic settings")


def check_awaited(count: int, timeout_s: float) -> None:
    check_kind("count", count, int, "a number of records")
    check_kind("timeout", timeout_s, (int, float), "a number of seconds")


def check_place(partition: int | None, headers: Headers, timestamp: int | None) -> None:
    """Check the arguments of a record other than key and value."""
    check_kind("partition", partition, (int, type(None)), "a partition's number, or None to let the key choose it")
    check_kind("timestamp", timestamp, (int, type(None)), "milliseconds since 1970, or None for now")
    pairs = headers if isinstance(headers, list | tuple) else [None]
    for pair in pairs:
        match pair:
            case (str(), bytes() | None):
                continue
        raise TypeError(f"headers={headers!r}: give a list of (name, bytes or None)")


def as_bytes(name: str, text: Text) -> bytes | None:
    """The bytes of a key or value."""
    check_kind(name, text, (bytes, str, type(None)), "bytes, text or None")
    return text.encode() if isinstance(text, str) else text
