"""The rules for faults: kills and power losses in the middle of an operation, and failing disks."""

import errno

from tests.model.partition_log import checks, rules, shortening
from tests.model.partition_log.batches import data_batch, make_records, random_config
from tests.model.partition_log.world import Allowed, LogWorld

from ottla.errors import LogDirectoryFailed, OttlaError

STEPS_MAX = (4, 14, 50)
"""An operation is cut short after up to this many disk calls; one of these is drawn."""


def kill(world: LogWorld) -> None:
    world.kill()


def lose_power(world: LogWorld) -> None:
    world.kill(power_loss=True)


def restart(world: LogWorld) -> None:
    """A clean shutdown, sometimes with a power loss right after it, and sometimes with other settings at the next start."""
    world.restart(power_loss=world.random.random() < 0.5)


def change_settings(world: LogWorld) -> None:
    world.config = random_config(world.random)
    world.restart()


OPERATIONS = (
    rules.append_plain,
    rules.append_transactional,
    rules.end_transaction,
    rules.append_as_follower,
    rules.roll,
    rules.flush,
    shortening.truncate,
    shortening.truncate,
    shortening.truncate_fully,
    shortening.retain,
    shortening.retain,
    shortening.compact,
    shortening.compact,
    shortening.compact,
    shortening.delete_due_files,
    restart,
)


def cut_short(world: LogWorld) -> None:
    """The process or the machine dies in the middle of an operation, at any of its steps."""
    operation = world.random.choice(OPERATIONS)
    power_loss = world.random.random() < 0.5
    disk = world.disk
    disk.crash_before(world.random.randrange(world.random.choice(STEPS_MAX)))
    try:
        operation(world)
    except LogDirectoryFailed:
        assert disk.crashed
        world.counts[f"cut short: {operation.__name__}"] += 1
        world.die(power_loss)
    else:
        disk.crash_before(1 << 60)


def fail_disk(world: LogWorld) -> None:
    """A disk call fails in the middle of an operation: the whole log goes offline, and the next start recovers it."""
    random, disk = world.random, world.disk
    operation = random.choice(OPERATIONS)
    fault = disk.fail(
        random.choice(("append", "append", "sync", "rename", "truncate", "open", "replace", "sync_directory", "remove", "*")),
        error=random.choice((errno.EIO, errno.ENOSPC)),
        skip=random.randrange(3),
        keep_bytes=random.randrange(200),
        cut_back_fails=random.random() < 0.5,
    )
    try:
        operation(world)
    except LogDirectoryFailed:
        assert fault.hits
        world.counts["disk failures"] += 1
        check_offline(world)
        world.die(power_loss=False)
    finally:
        disk.faults.remove(fault)


def check_offline(world: LogWorld) -> None:
    """Every operation on a log whose disk has failed is refused with the reason."""
    data, _ = data_batch(world, make_records(world, 0), -1)
    for attempt in (
        lambda: world.log.append_as_leader(data, 0),
        lambda: world.log.read(world.log.log_start_offset, 100),
        lambda: world.run(world.log.flush()),
        lambda: world.log.roll(),
    ):
        try:
            attempt()
        except OttlaError as error:
            checks.same("the error of a failed log", type(error), LogDirectoryFailed)
        else:
            raise AssertionError("a log whose disk has failed still works")


__all__ = ["Allowed", "change_settings", "cut_short", "fail_disk", "kill", "lose_power", "restart"]
