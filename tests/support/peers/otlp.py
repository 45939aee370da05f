"""Reads OpenTelemetry's MetricsData without the code under test: a protocol buffer reader and the field numbers it needs."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """One data point, with what its metric says of it."""

    metric: str
    kind: str
    """gauge, delta or cumulative"""
    attributes: dict[str, str]
    value: float
    time_ns: int
    start_ns: int


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number and value. Fixed64 come as 8 bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == 0:
            value, position = _varint(data, position)
        elif wire_type == 1:
            value, position = data[position : position + 8], position + 8
            assert len(value) == 8, "a fixed64 is cut off"
        elif wire_type == 2:
            size, position = _varint(data, position)
            value, position = data[position : position + size], position + size
            assert len(value) == size, "a field is cut off"
        else:
            raise AssertionError(f"wire type {wire_type} is not used by OTLP metrics")
        yield number, value


def read_metrics(data: bytes) -> tuple[dict[str, str], list[Point]]:
    """The resource's attributes and all points."""
    points: list[Point] = []
    resource: dict[str, str] = {}
    for resource_metrics in _all(data, 1):
        for each in _all(resource_metrics, 1):
            resource.update(_attributes(each, 1))
        for scope in _all(resource_metrics, 2):
            for metric in _all(scope, 2):
                points += _points(metric)
    return resource, points


def _points(metric: bytes) -> Iterator[Point]:
    (name,) = _all(metric, 1)
    for number, value in fields(metric):
        if number not in (5, 7):
            continue
        assert isinstance(value, bytes)
        kind = "gauge"
        if number == 7:
            said = dict(fields(value))
            assert said[3] == 1, "sums of clients are monotonic"
            kind = {1: "delta", 2: "cumulative"}[said[2]]  # type: ignore[index]
        for point in _all(value, 1):
            yield _point(name.decode(), kind, point)


def _point(name: str, kind: str, point: bytes) -> Point:
    single = dict(fields(point))
    number: float
    if 6 in single:
        (number,) = struct.unpack("<q", single[6])  # type: ignore[arg-type]
    else:
        (number,) = struct.unpack("<d", single[4])  # type: ignore[arg-type]
    times = [int.from_bytes(single.get(field, b""), "little") for field in (3, 2)]  # type: ignore[arg-type]
    return Point(name, kind, _attributes(point, 7), number, *times)


def _attributes(message: bytes, field: int) -> dict[str, str]:
    found = {}
    for pair in _all(message, field):
        (key,), (value,) = _all(pair, 1), _all(pair, 2)
        (text,) = _all(value, 1)
        found[key.decode()] = text.decode()
    return found


def _all(message: bytes, field: int) -> list[bytes]:
    return [value for number, value in fields(message) if number == field and isinstance(value, bytes)]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
