"""The console's changes of groups: a page shows what would be done, and that is done."""

from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest
from tests.support.servers.console_server import RunningConsole
from tests.support.servers.kafka_server import KafkaServer

from ottla import Admin, Consumer, Producer

NewName = Callable[[str], str]
HOSTILE = "<script>alert(1)</script>\"'&"


def committed(admin: Admin, group: str) -> dict[tuple[str, int], int]:
    offsets = admin.list_consumer_group_offsets([group])[group]
    return {(each.topic, each.partition): one.offset for each, one in offsets.items() if one is not None}


@pytest.fixture
def topic(cluster: KafkaServer, new_name: NewName) -> str:
    """A topic with two partitions of ten records, at the times 1,000 to 1,009."""
    name = new_name("topic")
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics({name: 2})
    with Producer(cluster.bootstrap) as producer:
        for number in range(20):
            producer.send(name, b"v", partition=number % 2, timestamp=1_000 + number // 2)
    return name


@pytest.fixture
def group(cluster: KafkaServer, topic: str, new_name: NewName) -> str:
    """A group that has committed 6 and 4."""
    name = new_name("group")
    with Admin(cluster.bootstrap) as admin:
        admin.alter_consumer_group_offsets(name, {(topic, 0): 6, (topic, 1): 4}).raise_first()
    return name


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("to=earliest", (0, 0)),
        ("to=latest", (10, 10)),
        ("to=offset&value=3", (3, 3)),
        ("to=shift&value=-2", (4, 2)),
        ("to=shift&value=100", (10, 10)),
        ("to=time&value=1007", (7, 7)),
        ("to=earliest&topic={topic}:1", (6, 0)),
    ],
)
def test_preview_shows_what_a_reset_does(
    console: RunningConsole, cluster: KafkaServer, topic: str, group: str, query: str, expected: tuple[int, int]
) -> None:
    path = f"/groups/{group}/reset?{query.format(topic=topic)}"
    plan = console.api(path)["plan"]
    with Admin(cluster.bootstrap) as admin:
        assert committed(admin, group) == {(topic, 0): 6, (topic, 1): 4}  # nothing has changed
        page = console.page(path)
        shown = unescape(page.split('name="plan" value="')[1].split('"')[0])
        assert shown == plan["text"]
        answer = console.post(f"/groups/{group}/reset", {"plan": shown})
        assert answer.status == 303, answer.text
        assert committed(admin, group) == {(topic, 0): expected[0], (topic, 1): expected[1]}
    assert "were reset" in console.page(answer.place)


def test_reset_over_the_api_computes_the_plan_itself(console: RunningConsole, topic: str, group: str) -> None:
    assert console.done(f"/groups/{group}/reset", {"to": "offset", "value": "2", "topic": topic}) == (
        f"The offsets of 2 partitions of group {group} were reset."
    )


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("to=nowhere", "is no place to reset to"),
        ("to=offset&value=many", "the offset must be a whole number"),
        ("to=time&value=yesterday", "is no time"),
        ("to=latest&topic=no-such-topic", "does not exist"),
    ],
)
def test_mistakes_are_pages_that_say_what_to_write(console: RunningConsole, group: str, query: str, text: str) -> None:
    answer = console.get(f"/groups/{group}/reset?{query}")
    assert answer.status in (400, 404, 502)
    assert text in unescape(answer.text)


def test_group_with_members_is_not_reset(console: RunningConsole, cluster: KafkaServer, topic: str, new_name: NewName) -> None:
    name = new_name("group")
    with Consumer(cluster.bootstrap, group_id=name, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        assert consumer.poll(timeout=30)
        consumer.commit()
        page = console.page(f"/groups/{name}/reset?to=earliest&topic={topic}")
        assert "can only be reset while it has no members" in page
        assert 'name="plan"' not in page
        answer = console.post(f"/groups/{name}/reset", {"to": "earliest", "topic": topic})
        assert answer.status == 409
        assert "no members" in answer.text


def test_offsets_move_to_another_group_and_the_old_one_goes(
    console: RunningConsole, cluster: KafkaServer, topic: str, group: str, new_name: NewName
) -> None:
    other = new_name("group")
    plan = console.api(f"/groups/{group}/move?target={other}")["plan"]
    assert [(each["before"], each["after"]) for each in plan["rows"]] == [(None, 6), (None, 4)]
    console.page(f"/groups/{group}/move?target={other}")
    console.done(f"/groups/{group}/move", {"target": other, "plan": plan["text"], "delete_source": "1"})
    with Admin(cluster.bootstrap) as admin:
        assert committed(admin, other) == {(topic, 0): 6, (topic, 1): 4}
        assert committed(admin, group) == {}


def test_offsets_move_to_a_topic_with_another_name(
    console: RunningConsole, cluster: KafkaServer, topic: str, group: str, new_name: NewName
) -> None:
    """The smaller topic has one partition and no records: one offset is left out, the other is clamped."""
    renamed = new_name("topic")
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics({renamed: 1})
        path = f"/groups/{group}/move?target={group}&renamed={topic}%3D{renamed}"
        plan = console.api(path)["plan"]
        assert len(plan["notes"]) == 2
        assert "has no partition 1" in plan["notes"][0]
        console.done(f"/groups/{group}/move", {"target": group, "renamed": f"{topic}={renamed}"})
        assert committed(admin, group) == {(topic, 0): 6, (topic, 1): 4, (renamed, 0): 0}


def test_offsets_of_one_partition_are_deleted(console: RunningConsole, cluster: KafkaServer, topic: str, group: str) -> None:
    path = f"/groups/{group}/delete-offsets"
    assert console.api(f"{path}?topic={topic}:1")["rows"] == [{"topic": topic, "partition": 1, "offset": 4}]
    console.page(f"{path}?topic={topic}:1")
    console.done(path, {"topic": f"{topic}:1"})
    with Admin(cluster.bootstrap) as admin:
        assert committed(admin, group) == {(topic, 0): 6}


def test_group_is_deleted_only_by_its_name(console: RunningConsole, cluster: KafkaServer, group: str) -> None:
    assert console.api(f"/groups/{group}/delete")["offsets"] == 2
    refused = console.post(f"/groups/{group}/delete", {"confirm": "another"})
    assert refused.status == 400
    assert "nothing was changed" in refused.text
    console.done(f"/groups/{group}/delete", {"confirm": group})
    with Admin(cluster.bootstrap) as admin:
        assert group not in {each.group_id for each in admin.list_groups()}


def test_hostile_group_ids_are_text(console: RunningConsole, cluster: KafkaServer, topic: str, new_name: NewName) -> None:
    name = new_name("group") + HOSTILE
    with Admin(cluster.bootstrap) as admin:
        admin.alter_consumer_group_offsets(name, {(topic, 0): 1}).raise_first()
    for action in ("", "/reset?to=earliest", f"/move?target={quote(HOSTILE)}", f"/delete-offsets?topic={topic}", "/delete"):
        page = console.page(f"/groups/{quote(name, safe='')}{action}")
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
