"""The metadata loader: what is committed becomes images, in order, and is published apart from commits."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.runtime.metadata_loader import MetadataLoader
from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.errors import BrokenInvariant, KafkaError
from ottla.ids import Uuid
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, ResourceType
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import ConfigRecord, NoOpRecord, RemoveTopicRecord, TopicRecord

NAME = "log.retention.ms"
BROKERS = (int(ResourceType.BROKER), "")


class Scene:
    """A loader; `published` has the published deltas and images."""

    def __init__(self) -> None:
        self.published: list[tuple[MetadataDelta, MetadataImage]] = []
        self.snapshots: list[tuple[int, int]] = []
        self.released = asyncio.Event()
        self.released.set()
        self.failure: Exception | None = None
        writer: Any = SimpleNamespace(loaded=lambda size: None, committed=self._count, close=self._close)
        self.loader = MetadataLoader(self._publish, writer)
        self.loader.start()
        self.next_offset = 0

    def _count(self, image: MetadataImage, size_bytes: int) -> None:
        self.snapshots.append((image.provenance.offset, size_bytes))

    async def _close(self) -> None: ...

    async def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        await self.released.wait()
        if self.failure is not None:
            raise self.failure
        self.published.append((delta, image))

    def batch(self, *records: Message) -> MetadataBatch:
        base, self.next_offset = self.next_offset, self.next_offset + max(1, len(records))
        return MetadataBatch(base, self.next_offset - 1, 1, 0, 10, records)

    def commit(self, *batches: Sequence[Message]) -> None:
        self.loader.committed([self.batch(*records) for records in batches])


def value(text: str) -> list[Message]:
    return [ConfigRecord(resource_type=BROKERS[0], resource_name="", name=NAME, value=text)]


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16)))


def test_batches_committed_during_a_publication_are_published_together() -> None:
    async def run() -> None:
        scene = Scene()
        scene.released.clear()
        scene.commit(value("1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        scene.commit(value("2"))
        scene.commit(value("3"), value("4"))
        assert scene.loader.published.configs == {}
        assert scene.loader.committed_image().configs[BROKERS] == {NAME: "4"}
        scene.released.set()
        await scene.loader.caught_up()
        assert [image.configs[BROKERS][NAME] for _, image in scene.published] == ["1", "4"]
        assert scene.loader.published.provenance.offset == 3
        assert scene.snapshots == [(0, 10), (3, 30)]
        await scene.loader.close()

    asyncio.run(run())


def test_batches_that_come_while_the_loaded_image_is_published_follow_it() -> None:
    async def run() -> None:
        scene = Scene()
        scene.loader.load([scene.batch(*value("0"))])
        scene.released.clear()
        scene.commit(value("1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        scene.commit(value("2"))
        scene.released.set()
        await scene.loader.caught_up()
        assert [image.configs[BROKERS][NAME] for _, image in scene.published] == ["0", "2"]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not scene.loader.failure.done()
        await scene.loader.close()

    asyncio.run(run())


def test_first_image_is_published_when_the_node_has_caught_up() -> None:
    async def run() -> None:
        scene = Scene()
        scene.loader.may_begin = lambda end_offset: end_offset >= 3
        scene.loader.loaded_snapshot(scene.batch(topic("old")))
        await asyncio.sleep(0.01)
        scene.commit([topic("new")])
        await asyncio.sleep(0.01)
        assert not scene.published
        assert not scene.loader.published_offset
        assert sorted(scene.loader.committed_image().topics.by_name) == ["new", "old"]
        scene.commit([NoOpRecord()])
        await scene.loader.caught_up()
        [(delta, image)] = scene.published
        assert sorted(image.topics.by_name) == ["new", "old"]
        assert {image.topics.by_id[each].name for each in delta.changed_topics} == {"new", "old"}
        assert scene.snapshots == [(2, 30)]
        scene.commit([topic("later")])
        await scene.loader.caught_up()
        delta, _ = scene.published[-1]
        assert len(delta.changed_topics) == 1
        await scene.loader.close()

    asyncio.run(run())


def test_first_image_has_what_is_committed_while_a_snapshot_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    class LongReplay:
        async def here(self) -> None:
            for _ in range(5):
                await asyncio.sleep(0)

    async def run() -> None:
        monkeypatch.setattr("ottla.broker.runtime.metadata_loader.BackgroundPauses", LongReplay)
        scene = Scene()
        known: list[int] = []  # the high watermark
        scene.loader.may_begin = lambda end_offset: bool(known) and end_offset >= known[0]
        scene.loader.loaded_snapshot(scene.batch(topic("old")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the replay is in its pause when the leader answers
        scene.commit([topic("new")])
        known.append(scene.loader.committed_offset)
        await scene.loader.caught_up()
        assert [sorted(image.topics.by_name) for _, image in scene.published] == [["new", "old"]]
        await scene.loader.close()

    asyncio.run(run())


def test_records_that_change_nothing_are_not_published() -> None:
    async def run() -> None:
        scene = Scene()
        scene.commit(value("1"))
        await scene.loader.caught_up()
        scene.commit([NoOpRecord()], [])
        await scene.loader.caught_up()
        assert len(scene.published) == 1
        assert scene.loader.published_offset == 3, "they count as applied"
        await scene.loader.close()

    asyncio.run(run())


def test_callers_wait_for_their_offset_only() -> None:
    async def run() -> None:
        scene = Scene()
        scene.commit(value("1"))
        first, later = scene.loader.caught_up(), scene.loader.published_up_to(3)
        await first
        assert not later.done()
        scene.commit(value("2"), value("3"))
        await later
        assert scene.loader.published_up_to(2).done()
        await scene.loader.close()

    asyncio.run(run())


def test_snapshot_of_another_node_replaces_everything_before_it() -> None:
    async def run() -> None:
        scene = Scene()
        scene.commit([topic("stays")], [topic("goes")], value("1"))
        await scene.loader.caught_up()
        scene.commit([topic("never seen")])
        scene.next_offset = 90
        scene.loader.loaded_snapshot(scene.batch(topic("stays"), topic("comes"), *value("2")))
        scene.commit([topic("later")])
        assert sorted(scene.loader.committed_image().topics.by_name) == ["comes", "later", "stays"]
        await scene.loader.caught_up()
        delta, image = scene.published[-1]
        assert sorted(image.topics.by_name) == ["comes", "later", "stays"]
        assert [each.name for each in delta.deleted_topics.values()] == ["goes"]
        assert {image.topics.by_id[each].name for each in delta.changed_topics} == {"comes", "later"}
        assert delta.changed_configs == {BROKERS}
        assert scene.loader.published_offset == scene.next_offset
        await scene.loader.close()

    asyncio.run(run())


@pytest.mark.parametrize("where", ["publish", "replay"])
def test_failure_is_reported_once_and_refuses_who_waits(where: str) -> None:
    async def run() -> None:
        scene = Scene()
        scene.failure = BrokenInvariant("the publisher cannot follow") if where == "publish" else None
        scene.commit([topic("t")] if where == "publish" else [RemoveTopicRecord(topic_id=Uuid(b"?" * 16))])
        with pytest.raises(KafkaError):
            await scene.loader.caught_up()
        assert isinstance(scene.loader.failure.result(), BrokenInvariant)
        with pytest.raises(KafkaError):
            await scene.loader.published_up_to(99)
        await scene.loader.close()

    asyncio.run(run())


def test_closing_refuses_who_waits() -> None:
    async def run() -> None:
        scene = Scene()
        waiting = scene.loader.published_up_to(1)
        await scene.loader.close()
        with pytest.raises(KafkaError, match="stopped"):
            await waiting

    asyncio.run(run())
