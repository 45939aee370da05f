"""The rules of the partition log under Hypothesis: it chooses rules and random draws, and shrinks failures to short cases.

The same rules in long seeded runs are in `test_log_steps.py`.
"""

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.model.partition_log.machine import WEIGHTS, new_world
from tests.model.partition_log.world import LogWorld

RANDOMS = st.randoms(use_true_random=False)


class LogMachine(RuleBasedStateMachine):
    """A log and its model; every rule draws from Hypothesis."""

    world: LogWorld | None = None

    @initialize(random=RANDOMS)
    def begin(self, random: Random) -> None:
        self.world = new_world(random)

    def step(self, number: int, random: Random) -> None:
        assert self.world is not None
        self.world.random = random
        self.world.disk.random = random
        RULES[number](self.world)

    @invariant()
    def is_the_same(self) -> None:
        if self.world is not None:
            self.world.check_step()

    def teardown(self) -> None:
        if self.world is not None:
            self.world.close_loop()


RULES = list(WEIGHTS)
for _number, _rule in enumerate(RULES):

    def _step(self: LogMachine, random: Random, number: int = _number) -> None:
        self.step(number, random)

    _step.__name__ = _rule.__name__
    setattr(LogMachine, _rule.__name__, rule(random=RANDOMS)(_step))

TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
