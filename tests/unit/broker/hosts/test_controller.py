"""The controller's writes: decided on the newest state, answered when committed and published."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import QuorumNode, setting

from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage
from ottla.wire.messages.metadata_records import PartitionRecord, TopicRecord

NAME = "log.retention.ms"


async def started(**changes: str) -> QuorumNode:
    node = QuorumNode({name.replace("_", "."): text for name, text in changes.items()})
    await node.format()
    await node.start()
    return node


def test_an_answer_comes_after_its_change_is_published() -> None:
    async def run() -> None:
        node = await started()
        await node.set(NAME, "7")
        assert node.settings() == {NAME: "7"}
        assert node.published[-1] is node.controller.published
        assert node.quorum.facts().high_watermark == node.quorum.end_offset

    asyncio.run(run())


def test_decisions_see_what_was_decided_before_them() -> None:
    async def run() -> None:
        node = await started()

        def count(state: ControllerState, now_ms: int) -> Decision[int]:
            before = int(state.image.configs[4, ""].get(NAME, "0"))
            return Decision(before + 1, [setting(NAME, str(before + 1))])

        published = len(node.published)
        assert await asyncio.gather(*(node.controller.write(count) for _ in range(30))) == list(range(1, 31))
        assert len(node.published) == published + 1, "what waits is committed and published together"

    asyncio.run(run())


def test_a_refusal_writes_nothing() -> None:
    async def run() -> None:
        node = await started()
        end_offset = node.quorum.end_offset

        def refuse(state: ControllerState, now_ms: int) -> Decision[None]:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

        with pytest.raises(KafkaError) as refusal:
            await node.controller.write(refuse)
        assert refusal.value.code == ErrorCode.INVALID_CONFIG
        assert node.quorum.end_offset == end_offset
        await node.set(NAME, "1")

    asyncio.run(run())


def test_an_answer_without_records_waits_for_what_it_builds_on() -> None:
    async def run() -> None:
        node = await started()
        order: list[str] = []
        node.on_publish = lambda delta, image: order.append("published")

        async def ask() -> None:
            await node.controller.write(lambda state, now_ms: Decision(None))
            order.append("answered")

        await asyncio.gather(node.set(NAME, "1"), ask())
        assert order == ["published", "answered"]
        await ask()
        assert order == ["published", "answered", "answered"], "nothing to wait for: answered at once"

    asyncio.run(run())


def test_first_publication_is_the_loaded_metadata() -> None:
    async def run() -> None:
        node = await started()
        await node.set(NAME, "5")
        await node.close()
        node.published.clear()
        deltas: list[set[tuple[int, str]]] = []
        node.on_publish = lambda delta, image: deltas.append(delta.changed_configs)
        await node.start()
        assert node.settings() == {NAME: "5"}
        assert deltas == [{(4, "")}, set()], "first what was there, then what this start has added"
        assert node.published[0].provenance.epoch == 1
        assert node.published[1].provenance.epoch == 2

    asyncio.run(run())


def test_state_has_the_offset_of_the_next_record() -> None:
    async def run() -> None:
        node = await started()
        assert node.controller.state.next_offset == node.quorum.end_offset
        await node.set(NAME, "5")
        assert node.controller.state.next_offset == node.quorum.end_offset
        assert node.controller.state.kraft_version == 1
        assert list(node.controller.state.quorum_node_ids) == [1]

    asyncio.run(run())


def topic_records(partitions: int) -> list[TopicRecord | PartitionRecord]:
    topic_id = Uuid(b"t" * 16)
    return [
        TopicRecord(name="large", topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=[1],
                isr=[1],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[Uuid(b"d" * 16)],
            )
            for index in range(partitions)
        ),
    ]


def test_a_change_too_large_for_a_batch_is_a_transaction() -> None:
    async def run() -> None:
        node = await started()
        records = topic_records(12_000)
        assert await node.write(*records) == 12_001
        assert len(node.controller.published.topics.by_name["large"].partitions) == 12_000
        assert node.controller.published.open_transaction is None
        await node.close()
        await node.start()
        batches = [len(batch.records) for batch in node.quorum.log.batches(0) if len(batch.records)]
        assert batches[2:6] == [1, 10_000, 2_001, 1]
        assert len(node.controller.published.topics.by_name["large"].partitions) == 12_000

    asyncio.run(run())


def test_without_transactions_a_change_must_fit_into_a_batch() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format(release_version="3.5")
        await node.start()
        with pytest.raises(KafkaError, match="metadata transaction"):
            await node.write(*(setting(f"s{number}", "x") for number in range(10_001)))
        await node.set(NAME, "1")

    asyncio.run(run())


def test_transaction_left_open_is_aborted_at_the_start() -> None:
    async def run() -> None:
        node = await started()
        await node.set(NAME, "1")
        change = node.quorum.log.prepare(topic_records(10_001), 30, 1)
        node.quorum.log.append(change)
        log = node.quorum.log.partition_log
        await log.truncate_to(change.batches[-1].base_offset)  # its end is lost
        await log.flush()
        node.crash()
        await node.start()
        assert node.controller.published.open_transaction is None
        assert "large" not in node.controller.published.topics.by_name
        assert node.settings() == {NAME: "1"}
        await node.write(*topic_records(1))
        assert "large" in node.controller.published.topics.by_name
        await node.close()
        await node.start()
        assert "large" in node.controller.published.topics.by_name

    asyncio.run(run())


def test_a_publication_that_fails_stops_the_node() -> None:
    async def run() -> None:
        node = await started()

        def break_down(delta: MetadataDelta, image: MetadataImage) -> None:
            raise BrokenInvariant("the publisher cannot follow")

        node.on_publish = break_down
        waiting = [asyncio.ensure_future(node.set(NAME, str(number))) for number in range(3)]
        for failed in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failed, KafkaError)
            assert "cannot follow" in str(failed)
        assert isinstance(node.quorum.failure.result(), BrokenInvariant)
        assert not node.controller.is_active

    asyncio.run(run())


def test_failed_disk_is_answered_with_not_controller() -> None:
    async def run() -> None:
        node = await started()
        node.disk.fail("append", "*/__cluster_metadata-0/*")
        with pytest.raises(KafkaError, match=r"Input/output error.*may or may not have been made") as refused:
            await node.set(NAME, "1")
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert isinstance(node.quorum.failure.result(), LogDirectoryFailed)

    asyncio.run(run())


def test_a_start_that_fails_says_why() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()

        def break_down(delta: MetadataDelta, image: MetadataImage) -> None:
            raise BrokenInvariant("the publisher cannot follow")

        node.on_publish = break_down
        with pytest.raises(BrokenInvariant, match="cannot follow"):
            await node.start()

    asyncio.run(run())


def test_records_that_cannot_be_replayed_stop_the_node() -> None:
    async def run() -> None:
        node = await started()
        await node.set(NAME, "1")
        with pytest.raises(BrokenInvariant):
            await node.write(PartitionRecord(partition_id=0, topic_id=Uuid(b"?" * 16)))
        assert node.quorum.failure.done()
        await node.close()
        await node.start()
        assert node.settings() == {NAME: "1"}, "they did not reach the log, which can still be read"

    asyncio.run(run())


def test_a_writer_that_gives_up_does_not_disturb_the_others() -> None:
    async def run() -> None:
        node = await started()
        first = asyncio.ensure_future(node.set(NAME, "1"))
        second = asyncio.ensure_future(node.set(NAME, "2"))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert node.settings() == {NAME: "2"}

    asyncio.run(run())
