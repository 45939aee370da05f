"""A power loss at every single step: no answered write is lost, and no epoch is led twice.

A run formats, starts, writes, takes a snapshot, starts again and writes more. It is repeated with a power loss before its first
changing disk call, its second, and so on, until a run completes. After each run, the node starts on what is left.
"""

import asyncio
from random import Random

import pytest
from tests.support.nodes.quorum_node import QuorumNode

from ottla.broker.runtime import snapshot_writer
from ottla.errors import LogDirectoryFailed, OttlaError

NAME = "log.retention.ms"


@pytest.fixture(autouse=True)
def segments_that_end_with_every_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_writer, "ROLL_BYTES", 1)


class Witness:
    """What was promised: the largest value answered, and the epochs led."""

    def __init__(self) -> None:
        self.answered = 0
        self.epochs: list[int] = []
        self.places: dict[int, tuple[int, int]] = {}
        """Offset → (epoch, value) of what was answered."""

    def led(self, node: QuorumNode) -> None:
        assert node.quorum.epoch not in self.epochs, "an epoch was led twice"
        self.epochs.append(node.quorum.epoch)

    async def write(self, node: QuorumNode, value: int) -> None:
        await node.set(NAME, str(value))
        self.answered = value
        self.places[node.quorum.facts().high_watermark - 1] = (node.quorum.epoch, value)

    def check(self, node: QuorumNode) -> None:
        found = int(node.settings().get(NAME, "0"))
        assert self.answered <= found <= self.answered + 1, "an answered record is lost, or one appeared that was not written"
        for batch in node.quorum.log.batches(node.quorum.log.partition_log.log_start_offset):
            if batch.last_offset in self.places:
                epoch, value = self.places[batch.last_offset]
                assert batch.epoch == epoch
                assert batch.records[-1].value == str(value)  # type: ignore[attr-defined]  # a ConfigRecord


async def live(node: QuorumNode, witness: Witness) -> None:
    """A node's life up to where its disk ends."""
    for _ in range(2):
        await node.start(())
        witness.led(node)
        for _ in range(2):
            await witness.write(node, witness.answered + 1)
        await node.loader.snapshots.write(node.loader.published)
        await witness.write(node, witness.answered + 1)
        await node.loader.snapshots._clean()
        await witness.write(node, witness.answered + 1)
        await node.close()


async def crash_at(step: int, seed: int, power_loss: bool) -> bool:
    """Whether the run was cut short."""
    node, witness = QuorumNode({"metadata.max.retention.bytes": "1"}, seed), Witness()
    await node.format()
    node.disk.crash_before(step)
    cut_short = False
    try:
        await live(node, witness)
    except (OttlaError, OSError):
        cut_short = True
        if node.is_open and node.quorum.is_leader and node.quorum.epoch not in witness.epochs:
            witness.led(node)  # elected, and cut short before it had said so
    node.crash(power_loss)
    for _ in range(2):  # and once more, from what the first start left
        await node.start()
        witness.check(node)
        witness.led(node)
        await witness.write(node, int(node.settings().get(NAME, "0")) + 1)
        node.crash(power_loss)
    return cut_short


@pytest.mark.parametrize(("power_loss", "stride"), [(True, 1), (False, 5)])
def test_answered_writes_survive_a_power_loss_at_every_step(power_loss: bool, stride: int) -> None:
    async def run() -> int:
        step = 0
        while await crash_at(step, seed=step, power_loss=power_loss):
            step += stride
        return step

    steps = asyncio.run(run())
    assert steps > 60, "the run has become too short to prove anything"


@pytest.mark.parametrize("seed", range(5))
def test_formatting_is_done_again_when_cut_short(seed: int) -> None:
    async def run() -> int:
        step = 0
        while True:
            node = QuorumNode(seed=seed)
            node.disk.crash_before(step)
            try:
                await node.format()
                return step
            except OttlaError:
                node.crash()
            await node.format(ignore_formatted=True)
            await node.start()
            assert node.quorum.epoch == 1
            step += 1

    assert asyncio.run(run()) > 5


KEYS = ["log.retention.ms", "num.partitions", "message.max.bytes", "log.segment.bytes"]
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "600", "metadata.max.retention.bytes": "3000"}


async def write_until_the_end(node: QuorumNode, key: str, answered: dict[str, int]) -> None:
    """One of several writers: counts up, and remembers the last write that was answered."""
    while True:
        value = answered[key] + 1
        await node.set(key, str(value))
        answered[key] = value


@pytest.mark.parametrize("seed", range(40))
def test_writers_and_snapshots_at_once_until_the_power_fails(seed: int) -> None:
    chance = Random(seed)

    async def pause() -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)

    async def run() -> None:
        node = QuorumNode(OFTEN, seed)
        await node.format()
        answered = dict.fromkeys(KEYS, 0)
        epochs: list[int] = []
        for _ in range(3):
            node.disk.pause = pause
            await node.start()
            assert node.quorum.epoch not in epochs
            epochs.append(node.quorum.epoch)
            for key, value in answered.items():
                found = int(node.settings().get(key, "0"))
                assert value <= found <= value + 1
                answered[key] = found
            node.disk.crash_before(chance.randrange(10, 120))
            writers = [asyncio.ensure_future(write_until_the_end(node, key, answered)) for key in KEYS]
            ended = await asyncio.gather(*writers, return_exceptions=True)
            assert all(isinstance(each, OttlaError) for each in ended)
            assert isinstance(node.quorum.failure.result(), LogDirectoryFailed)
            await node.loader.close()
            node.crash()
        assert sum(answered.values()) > 0

    asyncio.run(run())
