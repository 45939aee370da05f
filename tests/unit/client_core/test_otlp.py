"""The OTLP encoder, read back by a reader of its own."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.peers.otlp import Point, read_metrics

from ottla.client_core.otlp import DataPoint, encode_metrics

TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
POINT = st.builds(
    DataPoint,
    metric=st.sampled_from(["a", "b", "ü" * 100]),
    attributes=st.dictionaries(TEXT, TEXT, max_size=3).map(lambda found: tuple(found.items())),
    value=st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False),
    is_counter=st.booleans(),
    start_unix_ms=st.integers(0, 2**41),
)


@given(st.lists(POINT, max_size=20), st.dictionaries(TEXT, TEXT, max_size=3), st.integers(0, 2**41), st.booleans())
def test_every_point_is_read_back(points: list[DataPoint], resource: dict[str, str], unix_ms: int, is_delta: bool) -> None:
    found_resource, found = read_metrics(encode_metrics(points, resource, unix_ms, is_delta=is_delta))
    assert found_resource == resource
    kind = "delta" if is_delta else "cumulative"
    expected = [
        Point(
            each.metric,
            kind if each.is_counter else "gauge",
            dict(each.attributes),
            each.value,
            unix_ms * 1_000_000,
            each.start_unix_ms * 1_000_000 if each.is_counter else 0,
        )
        for each in points
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_known_bytes() -> None:
    """Written by hand from the protocol buffer encoding, so that reader and writer cannot share a mistake."""
    point = DataPoint("m", (("k", "v"),), 7, True, 1)
    number_point = (
        b"\x11" + (1_000_000).to_bytes(8, "little")
        + b"\x19" + (2_000_000).to_bytes(8, "little")
        + b"\x31" + (7).to_bytes(8, "little")
        + b"\x3a\x08" + b"\x0a\x01k" + b"\x12\x03" + b"\x0a\x01v"
    )  # fmt: skip
    sum_ = b"\x0a" + bytes([len(number_point)]) + number_point + b"\x10\x01" + b"\x18\x01"
    metric = b"\x0a\x01m" + b"\x3a" + bytes([len(sum_)]) + sum_
    scope = b"\x12" + bytes([len(metric)]) + metric
    resource_metrics = b"\x0a\x00" + b"\x12" + bytes([len(scope)]) + scope
    assert encode_metrics([point], {}, 2, is_delta=True) == b"\x0a" + bytes([len(resource_metrics)]) + resource_metrics


def test_an_int_beyond_64_bits_becomes_a_double() -> None:
    _, (point,) = read_metrics(encode_metrics([DataPoint("m", (), 2**70, True)], {}, 0, is_delta=False))
    assert point.value == 2.0**70
