"""Plans of resets as CSV: what is written is read back, in Kafka's form."""

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.groups.reset_offsets import read_plan, to_csv
from ottla.ids import TopicPartition

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
