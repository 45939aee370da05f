"""Prometheus's text format, as Prometheus's own parser reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ottla.metrics_text import MetricsText


def parsed(text: MetricsText) -> dict[str, tuple[str, str, list[tuple[str, dict[str, str], float]]]]:
    """Family → (kind, words, samples)"""
    families = text_string_to_metric_families(text.encode().decode())
    return {
        family.name: (
            family.type,
            family.documentation,
            [(sample.name, sample.labels, sample.value) for sample in family.samples],
        )
        for family in families
    }


def test_counters_gauges_and_summaries() -> None:
    text = MetricsText()
    text.counter("requests_total", "Requests.", 12)
    text.gauge("open", "Open connections.", 3.5, [("listener", "PLAINTEXT")])
    text.family("time", "summary", "Time.")
    text.sample(2, [("api", "Fetch")], "_count")
    text.sample(0.25, [("api", "Fetch")], "_sum")
    assert parsed(text) == {
        "requests": ("counter", "Requests.", [("requests_total", {}, 12.0)]),
        "open": ("gauge", "Open connections.", [("open", {"listener": "PLAINTEXT"}, 3.5)]),
        "time": ("summary", "Time.", [("time_count", {"api": "Fetch"}, 2.0), ("time_sum", {"api": "Fetch"}, 0.25)]),
    }


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8", exclude_characters="\r\n")))
def test_any_text_can_be_a_label_or_words(label: str, words: str) -> None:
    text = MetricsText()
    text.gauge("g", words.strip(), 1, [("a", label), ("b", "x")])
    kind, found_words, [(_, labels, value)] = parsed(text)["g"]
    assert (kind, labels, value) == ("gauge", {"a": label, "b": "x"}, 1.0)
    assert found_words.split() == words.split()


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, 0.1, 1e300, True])
def test_numbers_come_back_as_they_were(value: float) -> None:
    text = MetricsText()
    text.gauge("g", "", value)
    assert parsed(text)["g"][2] == [("g", {}, value)]
