"""Durations and times as Kafka reads them."""

from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.groups.reset_offsets import Scenario, find_target, parse_java_duration_ms, read_plan, to_csv
from ottla.ids import TopicPartition

NOTHING: dict[str, Any] = dict.fromkeys(each.value for each in Scenario)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("PT0S", 0),
        ("PT1H30M", 5_400_000),
        ("P7D", 604_800_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt5m", 300_000),
        ("PT-5M", -300_000),
        ("-PT5M", -300_000),
        ("PT-0.5S", -500),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1Y", None),
        ("1h", None),
    ],
)
def test_java_durations_are_parsed(text: str, duration_ms: int | None) -> None:
    assert parse_java_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2020-01-01T00:00:00.000", 1_577_836_800_000),
        ("2020-01-01T00:00:00.000Z", 1_577_836_800_000),
        ("2020-01-01T00:00:00.000+02:00", 1_577_829_600_000),
        ("2020-01-01T00:00:00.000+0200", 1_577_829_600_000),
    ],
)
def test_times_without_a_zone_are_utc(text: str, time_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    assert find_target(NOTHING | {"to_datetime": text}).number == time_ms


def test_zero_is_a_valid_number() -> None:
    assert find_target(NOTHING | {"to_offset": 0}) == (Scenario.OFFSET, 0, "")
    assert find_target(NOTHING | {"shift_by": 0}) == (Scenario.SHIFT, 0, "")


TOPICS = st.text("abcxyz019._-", min_size=1, max_size=40)
GROUPS = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029"), min_size=1, max_size=40)
    .map(str.strip)
    .filter(bool)
)
OFFSETS = st.dictionaries(st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1)


@given(st.dictionaries(GROUPS, OFFSETS, min_size=1))
def test_plans_are_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, plan: dict[str, dict[TopicPartition, int]]
) -> None:
    file = tmp_path_factory.getbasetemp() / "plan.csv"
    file.write_text("\n".join(to_csv(plan, with_group=True)), encoding="utf-8")
    assert read_plan(str(file), None) == plan
    group_id, offsets = next(iter(plan.items()))
    file.write_text("\n".join(to_csv({group_id: offsets}, with_group=False)), encoding="utf-8")
    assert read_plan(str(file), [group_id]) == {group_id: offsets}


def test_texts_are_quoted_as_kafka_does() -> None:
    offsets = {TopicPartition("orders", 0): 3, TopicPartition("a-topic-of-25-characters-", 1): 4}
    assert to_csv({'my "group"': offsets}, with_group=True) == [
        '"my ""group""",orders,0,3',
        '"my ""group""","a-topic-of-25-characters-",1,4',
    ]
    assert to_csv({"x": offsets}, with_group=False)[0] == "orders,0,3"


@pytest.mark.parametrize(
    ("content", "ids", "said"),
    [
        ("orders,0\n", ["a"], "line 1"),
        ("orders,0,1\norders,x,1\n", ["a"], "line 2"),
        ("orders,0,-1\n", ["a"], "line 1"),
        ("a,b,c,0,1\n", ["a"], "line 1"),
        ("orders,0,1\n", ["a", "b"], "does not name a group"),
        ("orders,0,1\n", None, "does not name a group"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: str, ids: list[str] | None, said: str) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(content)
    with pytest.raises(click.UsageError, match=said):
        read_plan(str(file), ids)
