"""The controller's writes: decided on the newest state, answered when committed; active only while it leads."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.quorum_node import QuorumNode, setting

from ottla.broker.runtime.controller import PeriodicDecisions
from ottla.broker.runtime.metadata_log import MetadataBatch, PreparedChange
from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller import elections
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.features import METADATA_VERSION_MAX
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

NAME = "log.retention.ms"


async def started(**changes: str) -> QuorumNode:
    node = QuorumNode({name.replace("_", "."): text for name, text in changes.items()})
    await node.format()
    await node.start()
    return node


def test_change_is_published_after_its_answer() -> None:
    async def run() -> None:
        node = await started()
        await node.set(NAME, "7")
        assert node.settings() == {NAME: "7"}
        assert node.published[-1] is node.loader.published
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
        await node.loader.caught_up()
        assert len(node.published) == published + 1, "what waits is committed and published together"

    asyncio.run(run())


def test_controller_registers_when_metadata_version_begins_to_keep_controllers() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format(release_version="3.6")
        await node.start()
        assert not node.loader.published.cluster.controllers
        update = FeatureUpdateKey(feature="metadata.version", max_version_level=METADATA_VERSION_MAX, upgrade_type=1)
        for _ in range(2):
            response = await node.controller.call(UpdateFeaturesRequest(feature_updates=[update]), Asker(2))
            assert response.error_code == ErrorCode.NONE
        await node.loader.caught_up()
        known = node.loader.published.cluster.controllers[1]
        assert known.incarnation_id == node.controller.incarnation_id
        written = [each for batch in node.quorum.log.batches(0) for each in batch.records]
        assert sum(isinstance(each, RegisterControllerRecord) for each in written) == 1

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

        async def ask(answer: str, *records: Message) -> None:
            await node.controller.write(lambda state, now_ms: Decision(None, records))
            order.append(answer)

        await asyncio.gather(ask("change", setting(NAME, "1")), ask("question"))
        assert order == ["change", "question"]
        await ask("again")
        assert order == ["change", "question", "again"], "nothing to wait for: answered at once"

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
        assert len(node.loader.published.topics.by_name["large"].partitions) == 12_000
        assert node.loader.published.open_transaction is None
        await node.close()
        await node.start()
        batches = [len(batch.records) for batch in node.quorum.log.batches(0) if len(batch.records)]
        assert batches[2:6] == [1, 10_000, 2_001, 1]
        assert len(node.loader.published.topics.by_name["large"].partitions) == 12_000

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
        assert node.loader.published.open_transaction is None
        assert "large" not in node.loader.published.topics.by_name
        assert node.settings() == {NAME: "1"}
        await node.write(*topic_records(1))
        assert "large" in node.loader.published.topics.by_name
        await node.close()
        await node.start()
        assert "large" in node.loader.published.topics.by_name

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
        assert isinstance(node.loader.failure.result(), BrokenInvariant)

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


async def opened() -> QuorumNode:
    """A node whose quorum is elected and does not commit by itself."""
    node = QuorumNode()
    await node.format()
    await node.open()
    node.loader.load(node.quorum.load())
    await node.quorum.elect()
    return node


def leader_batch(node: QuorumNode, epoch: int = 1) -> MetadataBatch:
    return MetadataBatch(0, 2, epoch, 0, 100)


def test_elected_controller_is_active_only_when_its_epoch_is_committed() -> None:
    async def run() -> None:
        node = await opened()
        controller = node.controller
        controller.leader_changed(1, 1)
        assert not controller.is_active
        with pytest.raises(KafkaError) as refused:
            await controller.write(lambda state, now_ms: Decision(None))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        controller.committed([leader_batch(node, epoch=0)])
        assert not controller.is_active, "records of an earlier epoch prove nothing"
        controller.committed([leader_batch(node)])
        assert controller.is_active
        assert controller.state.image.features["metadata.version"], "the bootstrap records are written"

    asyncio.run(run())


def test_controller_that_lost_the_lead_refuses_its_callers_and_lives_on() -> None:
    async def run() -> None:
        node = await opened()
        controller = node.controller
        controller.leader_changed(1, 1)
        controller.committed([leader_batch(node)])
        waiting = asyncio.ensure_future(controller.write(lambda state, now_ms: Decision(None, [setting(NAME, "1")])))
        await asyncio.sleep(0)
        assert controller.state.image.configs[4, ""][NAME] == "1"
        controller.leader_changed(2, 2)
        with pytest.raises(KafkaError, match="may or may not have been made") as refused:
            await waiting
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert not controller.is_active
        assert not controller.state.image.configs, "what was not committed is forgotten"
        assert not node.quorum.failure.done()
        controller.leader_changed(1, 1)  # elected again; what was committed since is in the loader's image
        controller.committed([leader_batch(node)])
        assert controller.is_active

    asyncio.run(run())


def test_write_is_refused_if_the_leader_resigns_during_its_append() -> None:
    """Else its caller is answered when another leader has committed other records at the same offsets."""

    async def run() -> None:
        node = await opened()
        controller = node.controller
        controller.leader_changed(1, 1)
        controller.committed([leader_batch(node)])
        append = node.quorum.append

        def append_and_resign(change: PreparedChange) -> None:
            append(change)
            controller.leader_changed(None, 1)

        node.quorum.append = append_and_resign  # type: ignore[method-assign]  # as check-quorum does in the append's step
        writing = asyncio.ensure_future(controller.write(lambda state, now_ms: Decision(None, [setting(NAME, "1")])))
        await asyncio.sleep(0)
        controller.committed([MetadataBatch(3, node.quorum.end_offset, 2, 0, 100)])
        with pytest.raises(KafkaError, match="may or may not have been made") as refused:
            await writing
        assert refused.value.code == ErrorCode.NOT_CONTROLLER

    asyncio.run(run())


def test_controller_that_is_about_to_renounce_fences_nobody() -> None:
    async def run() -> None:
        node = await opened()
        controller = node.controller
        controller.leader_changed(1, 1)
        controller.committed([leader_batch(node)])
        registered = RegisterBrokerRecord(broker_id=2, incarnation_id=Uuid(bytes(16)), broker_epoch=7, fenced=False)
        await_committed = asyncio.ensure_future(controller.write(lambda state, now_ms: Decision(None, [registered])))
        await asyncio.sleep(0)
        end_offset = node.quorum.end_offset
        controller.state.sessions.touch(2, 7, -1_000_000)
        node.quorum._driver.led_epoch = -1  # as while a higher epoch becomes durable
        controller._fence_silent_brokers()
        assert node.quorum.end_offset == end_offset
        assert not node.quorum.failure.done()
        await_committed.cancel()

    asyncio.run(run())


def test_controller_does_not_become_active_in_an_epoch_that_is_over() -> None:
    """The commit that activates it is delivered while a higher epoch becomes durable: `leader_changed` comes afterwards."""

    async def run() -> None:
        node = await opened()
        controller, end_offset = node.controller, node.quorum.end_offset
        controller.leader_changed(1, 1)
        node.quorum._driver.led_epoch = -1
        controller.committed([leader_batch(node)])
        assert not controller.is_active
        assert node.quorum.end_offset == end_offset
        controller.leader_changed(None, 2)
        assert not node.quorum.failure.done()

    asyncio.run(run())


def test_controller_that_loses_the_lead_while_it_becomes_active_lives_on() -> None:
    async def run() -> None:
        node = await opened()
        controller, append = node.controller, node.quorum.append

        def append_and_lose_the_lead(change: PreparedChange) -> None:
            append(change)
            node.quorum._driver.led_epoch = -1

        node.quorum.append = append_and_lose_the_lead  # type: ignore[method-assign]  # a stand-in
        controller.leader_changed(1, 1)
        controller.committed([leader_batch(node)])
        assert not controller.is_active
        assert not controller.state.image.features, "what was appended may never be committed"
        assert not node.quorum.failure.done()
        controller.leader_changed(2, 2)
        assert not controller.is_active

    asyncio.run(run())


def test_same_leader_in_a_new_epoch_activates_again() -> None:
    async def run() -> None:
        node = await opened()
        controller = node.controller
        controller.leader_changed(1, 1)
        controller.committed([leader_batch(node)])
        controller.leader_changed(1, 2)
        assert not controller.is_active
        controller.leader_changed(None, 3)
        controller.committed([leader_batch(node, epoch=3)])
        assert not controller.is_active, "another node may lead in epoch 3"

    asyncio.run(run())


def test_commit_does_not_wait_for_publishing() -> None:
    async def run() -> None:
        node = await started()
        released = asyncio.Event()
        publish = node.loader._publish

        async def slowly(delta: MetadataDelta, image: MetadataImage) -> None:
            await released.wait()
            await publish(delta, image)

        node.loader._publish = slowly
        for number in range(3):
            await node.controller.write(lambda state, now_ms, text=str(number): Decision(None, [setting(NAME, text)]))  # type: ignore[misc]
        assert node.settings() == {}
        caught_up = node.loader.caught_up()
        released.set()
        await caught_up
        assert node.settings() == {NAME: "2"}

    asyncio.run(run())


def test_kraft_version_is_raised_by_a_change_of_features() -> None:
    async def run() -> None:
        static = {"controller.quorum.voters": "1@localhost:9093", "controller.quorum.bootstrap.servers": ""}
        node = QuorumNode(static)
        await node.format(standalone=False)
        await node.start()
        assert node.quorum.kraft_version == 0
        request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="kraft.version", max_version_level=1)])
        response = await node.controller.call(request, Asker(2))
        assert (response.error_code, response.error_message) == (0, None)
        assert (node.quorum.kraft_version, node.controller.state.kraft_version) == (1, 1)
        (voter,) = node.quorum.voters
        assert voter.key == node.quorum.replica.local
        await node.set("log.retention.ms", "7")
        await node.close()
        await node.start()
        assert node.quorum.kraft_version == 1, "it is in the log"
        assert node.settings() == {"log.retention.ms": "7"}
        await node.close()

    asyncio.run(run())


class Controller:
    """Commits at once. `decided` has the names of the decisions."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ControllerCluster()
        for broker_id in (1, 2):
            self.cluster.add_broker(broker_id)
        self.decided: list[str] = []
        self.refusals = 0
        self.elections = PeriodicDecisions(ControllerSettings("c", 1, **settings), self.write)

    async def write(self, decide: Callable[[ControllerState, int], Decision[bool]]) -> bool:
        self.decided.append(decide.__name__)
        if self.refusals:
            self.refusals -= 1
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another one is active")
        return self.cluster.apply(decide(self.cluster.state, 0))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.001)


def test_partitions_get_preferred_and_unclean_leaders() -> None:
    async def scene() -> None:
        controller = Controller(leader_balance_interval_ms=5, unclean_election_interval_ms=5)
        cluster = controller.cluster
        topic_id = cluster.create_topic("t", assignments=[[1, 2], [2, 1]]).id
        cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)])
        controller.refusals = 2
        controller.elections.start()
        await controller.until(lambda: cluster.partition("t").leader == 1)
        cluster.append([PartitionChangeRecord(topic_id=topic_id, partition_id=1, leader=-1, isr=[])])
        name = "unclean.leader.election.enable"
        cluster.append([ConfigRecord(resource_type=2, resource_name="t", name=name, value="true")])
        await controller.until(lambda: cluster.partition("t", 1).leader == 2)
        controller.elections.stop()
        count = len(controller.decided)
        await asyncio.sleep(0.05)
        assert len(controller.decided) == count

    asyncio.run(scene())


def test_elections_go_on_at_once_while_there_are_more(monkeypatch: Any) -> None:
    async def scene() -> None:
        monkeypatch.setattr(elections, "ELECTIONS_AT_ONCE_MAX", 1)
        controller = Controller(leader_balance_interval_ms=1000, unclean_election_interval_ms=3_600_000)
        topic_id = controller.cluster.create_topic("t", assignments=[[1, 2]] * 3).id
        moved = [PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=2) for number in range(3)]
        controller.cluster.append(moved)
        controller.elections.start()
        await controller.until(lambda: len(controller.decided) == 4)
        assert {each.leader for each in controller.cluster.topic("t").partitions.values()} == {1}
        controller.elections.stop()

    asyncio.run(scene())


def test_leaders_are_not_balanced_if_that_is_switched_off() -> None:
    async def scene() -> None:
        controller = Controller(leader_balance_interval_ms=None, unclean_election_interval_ms=2)
        controller.elections.start()
        await controller.until(lambda: len(controller.decided) >= 5)
        controller.elections.stop()
        assert set(controller.decided) == {"elect_unclean_leaders"}

    asyncio.run(scene())
