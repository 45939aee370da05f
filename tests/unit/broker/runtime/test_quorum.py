"""The quorum on a node: election on a formatted directory, and commits."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import pytest
from tests.support.nodes.quorum_node import FOLDER, QuorumNode, setting

from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum import NotAQuorumOfOne
from ottla.broker.runtime.start import Listeners, follow_quorum
from ottla.errors import CorruptFile, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import METADATA_TOPIC_ID, ZERO_UUID
from ottla.log.directories.partition_metadata import read_partition_metadata
from ottla.raft.election import ElectionState
from ottla.raft.epochs import RECOVERED_ABOVE_LOG
from ottla.raft.quorum_state import read_quorum_state, write_quorum_state
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.records.control import ControlType


def on_formatted(work: Callable[[QuorumNode], Coroutine[None, None, None]]) -> None:
    """Do `work` with a node whose directory was just formatted."""

    async def whole() -> None:
        node = QuorumNode()
        await node.format()
        await work(node)

    asyncio.run(whole())


def test_a_formatted_directory_is_led_in_epoch_1() -> None:
    async def run(node: QuorumNode) -> None:
        await node.open()
        quorum = node.quorum
        assert list(quorum.load()) == [], "no metadata records yet, only voters"
        assert quorum.kraft_version == 1
        await quorum.elect()
        assert quorum.is_leader
        assert quorum.epoch == 1
        batches = list(quorum.log.batches(0))
        assert [control.type for control in batches[0].controls] == [
            ControlType.LEADER_CHANGE,
            ControlType.KRAFT_VERSION,
            ControlType.KRAFT_VOTERS,
        ]
        assert read_partition_metadata(node.disk, FOLDER) == METADATA_TOPIC_ID
        assert read_quorum_state(node.disk, FOLDER) == ElectionState(1, 1)

    on_formatted(run)


def test_every_start_is_another_epoch() -> None:
    async def run(node: QuorumNode) -> None:
        for epoch in (1, 2, 3):
            await node.start()
            assert node.quorum.epoch == epoch
            await node.close()
        await node.open()
        controls = [batch.controls for batch in node.quorum.log.batches(0) if batch.controls]
        assert [len(each) for each in controls] == [3, 1, 1], "the voters are written once"

    on_formatted(run)


def test_lost_quorum_state_is_replaced_from_the_log() -> None:
    async def run(node: QuorumNode) -> None:
        await node.start()
        await node.close()
        await node.disk.remove(f"{FOLDER}/quorum-state")
        await node.start()
        assert node.quorum.epoch == 2

    on_formatted(run)


def test_a_node_starts_from_a_forged_epoch_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A stranger's pre-vote could once raise the epoch to its end, and the next election wrote one that fits no field."""

    async def run(node: QuorumNode) -> None:
        await node.start()
        await node.close()
        await write_quorum_state(node.disk, FOLDER, ElectionState(1 << 31, 1), 1, VoterSet())
        await node.start()
        assert node.quorum.is_leader
        assert node.quorum.epoch == 1 + RECOVERED_ABOVE_LOG + 1
        await node.close()
        await node.start()
        assert node.quorum.epoch == 1 + RECOVERED_ABOVE_LOG + 2, "the repaired epoch is durable"

    on_formatted(run)
    assert len([each for each in caplog.records if "a forged request raised it" in each.getMessage()]) == 1


def test_a_damaged_quorum_state_is_refused() -> None:
    async def run(node: QuorumNode) -> None:
        await node.disk.replace_file(f"{FOLDER}/quorum-state", b"{}")
        with pytest.raises(CorruptFile, match="quorum-state"):
            await node.start()

    on_formatted(run)


def test_vote_for_another_node_is_kept_until_the_next_epoch() -> None:
    async def run(node: QuorumNode) -> None:
        voted = ElectionState(8, voted=ReplicaKey(4, ZERO_UUID))
        await write_quorum_state(node.disk, FOLDER, voted, 1, VoterSet())
        await node.start()
        assert node.quorum.epoch == 9

    on_formatted(run)


@pytest.mark.parametrize(
    ("changes", "options", "complaint"),
    [
        ({"controller.quorum.voters": "1@h:1,2@h:2,3@h:3"}, {"standalone": False}, "3 voters"),
        ({}, {"standalone": False, "no_initial_controllers": True}, "knows no voters"),
        (
            {},
            {"standalone": False, "initial_controllers": "7@h:1:AAAAAAAAAAAAAAAAAAABBB"},
            "only voter of this quorum is node 7",
        ),
    ],
)
def test_node_that_is_not_the_only_voter_is_refused_with_a_remedy(
    changes: dict[str, str], options: dict[str, object], complaint: str
) -> None:
    async def run() -> None:
        node = QuorumNode(changes)
        await node.format(**options)
        with pytest.raises(NotAQuorumOfOne, match=complaint):
            await node.start()

    asyncio.run(run())


def test_a_static_quorum_of_one_is_led_too() -> None:
    async def run() -> None:
        node = QuorumNode({"controller.quorum.voters": "1@localhost:9093", "controller.quorum.bootstrap.servers": ""})
        await node.format(standalone=False)
        await node.start()
        assert node.quorum.kraft_version == 0
        facts = node.quorum.facts()
        assert [voter.replica_id for voter in facts.voters] == [1]
        assert b'"data_version":0' in node.disk.read_file(f"{FOLDER}/quorum-state")

    asyncio.run(run())


def test_facts_for_describe_quorum() -> None:
    async def run(node: QuorumNode) -> None:
        await node.start()
        facts = node.quorum.facts()
        assert (facts.leader_id, facts.leader_epoch) == (1, 1)
        assert facts.high_watermark == node.quorum.end_offset == facts.voters[0].log_end_offset
        assert facts.voters[0].last_caught_up_ms == node.clock.now_ms()
        assert facts.voters[0].directory_id != ZERO_UUID
        assert facts.endpoints == {1: {"CONTROLLER": ("localhost", 9093)}}
        assert list(facts.observers) == []

    on_formatted(run)


class SilentListener:
    """Notes the leaders, and nothing else."""

    def __init__(self) -> None:
        self.leaders: list[tuple[int | None, int]] = []

    def committed(self, batches: Sequence[MetadataBatch]) -> None: ...
    def loaded_snapshot(self, snapshot: MetadataBatch) -> None: ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))


def test_waiting_appends_share_one_sync_and_commit_in_order() -> None:
    async def run(node: QuorumNode) -> None:
        await node.open()
        quorum = node.quorum
        list(quorum.load())
        await quorum.elect()
        told: list[MetadataBatch] = []
        released = asyncio.Event()

        class Listener(SilentListener):
            def committed(self, batches: Sequence[MetadataBatch]) -> None:
                told.extend(batches)
                if quorum.end_offset == 53:
                    released.set()

        follow_quorum(quorum, Listeners(Listener()))
        for number in range(50):
            quorum.append(quorum.prepare([setting("log.retention.ms", str(number))], 30))
        syncs = node.disk.counts["sync"]
        await released.wait()
        assert node.disk.counts["sync"] - syncs == 1
        assert [batch.base_offset for batch in told] == [0, *range(3, 53)]
        assert node.quorum.facts().high_watermark == 53

    on_formatted(run)


def test_listener_is_not_called_before_the_sync() -> None:
    async def run(node: QuorumNode) -> None:
        await node.open()
        quorum = node.quorum
        list(quorum.load())
        await quorum.elect()
        told: list[int] = []
        device_answers, told_once = asyncio.Event(), asyncio.Event()

        class Listener(SilentListener):
            def committed(self, batches: Sequence[MetadataBatch]) -> None:
                assert self.leaders == [(1, 1)]
                told.append(batches[-1].last_offset)
                told_once.set()

        async def pause() -> None:
            await device_answers.wait()

        node.disk.pause = pause
        follow_quorum(quorum, Listeners(Listener()))
        for _ in range(20):
            await asyncio.sleep(0)
        assert told == []
        assert quorum.facts().high_watermark == -1
        device_answers.set()
        await told_once.wait()
        assert told == [2]

    on_formatted(run)


def test_failed_sync_stops_the_node_without_calling_the_listener() -> None:
    async def run(node: QuorumNode) -> None:
        await node.start()
        node.disk.fail("sync", f"{FOLDER}/*.log")
        with pytest.raises(KafkaError) as refusal:
            await node.set("log.retention.ms", "1")
        assert refusal.value.code == ErrorCode.NOT_CONTROLLER
        assert isinstance(node.quorum.failure.result(), LogDirectoryFailed)
        with pytest.raises(KafkaError, match="not the active controller"):
            await node.set("log.retention.ms", "2")
        await node.close()

    on_formatted(run)


def test_only_the_leader_appends() -> None:
    async def run(node: QuorumNode) -> None:
        await node.open()
        with pytest.raises(KafkaError) as refusal:
            node.quorum.prepare([setting("a", "b")], 30)
        assert refusal.value.code == ErrorCode.NOT_CONTROLLER

    on_formatted(run)


def test_changed_controller_endpoint_updates_the_voter_record() -> None:
    async def run(node: QuorumNode) -> None:
        await node.open()
        list(node.quorum.load())
        await node.quorum.elect({"CONTROLLER": ("localhost", 4711)})
        assert node.quorum.facts().endpoints == {1: {"CONTROLLER": ("localhost", 4711)}}
        await node.quorum.close()
        await node.open()
        list(node.quorum.load())
        assert dict(next(iter(node.quorum.voters)).endpoints) == {"CONTROLLER": ("localhost", 4711)}

    on_formatted(run)
