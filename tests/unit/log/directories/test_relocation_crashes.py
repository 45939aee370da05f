"""A move stopped at every step, by a kill or a power loss: one log is left, with everything that was acknowledged.

During the move, records are appended, some of them are flushed, and records are deleted from the log start.
"""

import asyncio
from random import Random

import pytest
from tests.support.logs.batches import T0, make_batch, records_of
from tests.support.logs.log_directories import NodeStorage

from ottla.errors import OttlaError
from ottla.ids import TopicPartition
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.relocation import Relocation, begin, found_at_start
from ottla.log.partition_log import PartitionLog

T_0 = TopicPartition("t", 0)
PRODUCER = 7
PIECE_BYTES = 700


class Scene:
    """Node 1 with t-0 in /a, a producer that writes to it, and what was acknowledged to that producer."""

    def __init__(self, seed: int) -> None:
        self.storage = NodeStorage()
        self.storage.disk.random = Random(seed)
        self.storage.open()
        self.storage.create("t")
        self.storage.create("other")
        self.appended = 0
        """How many appends were acknowledged."""
        self.flushed = 0
        """How many of those were flushed before a flush returned."""
        self.deleted = 0
        """The log start offset of the last acknowledged deletion."""
        for _ in range(25):
            self.append()

    @property
    def log(self) -> PartitionLog:
        log = self.storage.directories.find(T_0)
        assert log is not None
        return log

    def append(self, in_step: bool = True) -> None:
        number = self.appended
        producer = (PRODUCER, 0, number) if in_step else None
        batch = make_batch(b"%d" % number + b"x" * 80, timestamp=T0 + number, producer=producer)
        info = self.log.append_as_leader(batch, 0)
        assert (info.first_offset, info.is_duplicate) == (number, False)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.appended += 1

    async def live(self) -> None:
        """Append, flush and delete concurrently, until the disk has crashed."""
        await asyncio.gather(self._keep_appending(), self._keep_flushing(), self._delete_now_and_then(), return_exceptions=True)

    async def _keep_appending(self) -> None:
        while not self.storage.disk.crashed:
            if self.appended < 200:
                self.append()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def _keep_flushing(self) -> None:
        while not self.storage.disk.crashed:
            goal = self.appended
            await self.log.flush()
            self.flushed = max(self.flushed, goal)
            for _ in range(10):
                await asyncio.sleep(0)

    async def _delete_now_and_then(self) -> None:
        for offset in (6, 9, 12):
            for _ in range(40):
                await asyncio.sleep(0)
            await self.delete_records(offset)

    async def delete_records(self, offset: int) -> None:
        self.log.delete_records(offset)
        written = None
        while (directory := self.storage.directories.directory_of(T_0)) is not written:
            assert directory is not None
            await directory.write_log_starts()
            written = directory
        self.deleted = offset

    async def move(self, directories: LogDirectories, from_start: bool = False) -> None:
        if from_start:
            moves = found_at_start(directories)
        else:
            target = directories.directory_at("/b")
            assert target is not None
            moves = [await begin(directories, T_0, target)]
        for move in moves:
            await copy_and_switch(move)

    async def move_under_load(self) -> bool:
        """Move the partition while it is used; True if the move completed."""
        living = asyncio.create_task(self.live())
        try:
            await self.move(self.storage.directories)
            return True
        except (OSError, OttlaError):
            assert self.storage.disk.crashed
            return False
        finally:
            living.cancel()
            await asyncio.wait([living])

    def read(self) -> dict[int, bytes | None]:
        """Offset → value of all records that a reader gets from the partition's only log."""
        holders = [each.path for each in self.storage.directories.directories if T_0 in each.logs]
        assert len(holders) == 1
        log = self.log
        assert log.folder == f"{holders[0]}/t-0"
        found: dict[int, bytes | None] = {}
        offset = log.log_start_offset
        while (records := log.read(offset, 5000).records) is not None:
            found |= {record.offset: record.value for record in records_of(records.read()) if record.offset >= offset}
            offset = max(found) + 1
        return found

    def check(self, sure: int) -> dict[int, bytes | None]:
        """Check that every record up to offset `sure` is there, and none that was deleted or not written; returns them."""
        found = self.read()
        assert self.log.log_start_offset >= self.deleted or self.log.log_end_offset <= self.deleted
        assert set(range(self.log.log_start_offset, sure)) <= set(found)
        assert all(value == b"%d" % offset + b"x" * 80 for offset, value in found.items())
        # The append that the crash interrupted may have reached the file.
        assert sure <= self.log.log_end_offset <= self.appended + 1
        return found


async def copy_and_switch(move: Relocation) -> None:
    while True:
        await move.set_out()
        if not move.copy_piece(PIECE_BYTES):
            break
        await asyncio.sleep(0)
    switch = await move.prepare()
    try:
        switch.make()
        await switch.settle()
    finally:
        await switch.release()


def cut_short(step: int, power_loss: bool, seed: int) -> tuple[Scene, bool]:
    """A move stopped after `step` calls that change the disk."""
    scene = Scene(seed)
    disk = scene.storage.disk

    async def pause() -> None:
        await asyncio.sleep(0)

    disk.pause = pause
    disk.crash_before(step)
    done = asyncio.run(scene.move_under_load())
    disk.pause = None
    if done:
        disk.crash_before(0)
    scene.storage.crash(power_loss)
    return scene, done


def left_over(scene: Scene) -> str:
    """Whether the switch was made before the crash."""
    return "switched" if scene.log.folder.startswith("/b/") else "not"


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
@pytest.mark.parametrize(
    "is_quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["half of the steps", "all steps"]
)
def test_one_copy_and_everything_acknowledged(power_loss: bool, is_quick: bool) -> None:
    """The quick form is killed at the even steps and loses its power at the odd ones: together at every step."""
    outcomes = {"switched": 0, "not": 0}
    for step in range(int(power_loss), 10_000, 2) if is_quick else range(10_000):
        scene, done = cut_short(step, power_loss, seed=step)
        outcomes[left_over(scene)] += 1
        kept = scene.check(scene.flushed if power_loss else scene.appended)
        scene.appended = scene.log.log_end_offset
        scene.append(in_step=not power_loss)  # a power loss may remove unflushed records from the middle
        kept |= {scene.appended - 1: scene.read()[scene.appended - 1]}
        asyncio.run(scene.move(scene.storage.directories, from_start=True))
        assert scene.read() == kept
        assert scene.log.folder == "/b/t-0" or step < 30  # the copy may not have started
        scene.storage.crash()
        assert scene.read() == kept
        if done:
            break
    assert outcomes["switched"] > 2
    assert outcomes["not"] > 10
    assert step > 60


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
def test_a_start_that_completes_a_move_can_be_cut_short_too(power_loss: bool) -> None:
    """Killed right after the switch, then at every step of the next start."""
    between = 0
    for step in range(300):
        scene = Scene(seed=step)

        async def switch_only(scene: Scene = scene) -> None:
            target = scene.storage.directories.directory_at("/b")
            assert target is not None
            move = await begin(scene.storage.directories, T_0, target)
            await move.set_out()
            switch = await move.prepare()
            switch.make()
            await scene.storage.disk.sync_directory("/a")

        asyncio.run(switch_only())
        scene.storage.disk = scene.storage.disk.crash(power_loss)
        scene.storage.disk.crash_before(step)
        try:
            scene.storage.open()
            started = True
        except (OSError, OttlaError):
            started = False
        if T_0 in {name for each in scene.storage.directories.directories for name in each.future_logs}:
            between += 1
        scene.storage.crash(power_loss)
        scene.check(25 if not power_loss else scene.log.recovery_point)
        assert scene.log.folder == "/b/t-0"
        if started:
            break
    assert step > 5
