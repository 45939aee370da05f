"""All rules with their weights, and a plain seeded run over them."""

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.model.partition_log import faults, rules, shortening
from tests.model.partition_log.batches import random_config
from tests.model.partition_log.world import LogWorld

Rule = Callable[[LogWorld], None]

WEIGHTS: dict[Rule, int] = {
    rules.append_plain: 20,
    rules.append_idempotent: 14,
    rules.append_repeated: 6,
    rules.append_out_of_order: 4,
    rules.append_transactional: 10,
    rules.end_transaction: 8,
    rules.settle: 3,
    rules.append_as_follower: 8,
    rules.new_leader: 2,
    rules.roll: 3,
    rules.read: 12,
    rules.look_up_time: 5,
    rules.look_up_aborted: 3,
    rules.raise_high_watermark: 14,
    rules.move_high_watermark: 1,
    rules.advance_clock: 8,
    rules.flush: 5,
    rules.expire_producers: 1,
    shortening.truncate: 2,
    shortening.truncate_fully: 1,
    shortening.delete_records: 2,
    shortening.retain: 3,
    shortening.delete_due_files: 2,
    shortening.compact: 6,
    faults.kill: 2,
    faults.lose_power: 2,
    faults.restart: 2,
    faults.change_settings: 1,
    faults.cut_short: 5,
    faults.fail_disk: 2,
}

INTERLEAVED: list[Rule] = [rules.append_plain, rules.append_idempotent, rules.append_transactional, rules.read]


def new_world(random: Random) -> LogWorld:
    world = LogWorld(random, random_config(random))
    world.interleaved = INTERLEAVED
    return world


def run_steps(seed: int, steps: int) -> Counter[str]:
    """Take `steps` random steps and compare after each. Returns counts of what happened. An error names the seed."""
    random = Random(seed)
    world = new_world(random)
    taken: list[str] = []
    try:
        for _ in range(steps):
            rule = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            taken.append(rule.__name__)
            rule(world)
            world.check_step()
        world.check_everything()
    except Exception as error:
        error.add_note(f"seed {seed}, step {len(taken)}; the last steps were {', '.join(taken[-10:])}")
        raise
    finally:
        world.close_loop()
    return world.counts
