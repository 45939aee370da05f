"""The order of effects: an election is durable before anything else of its step leaves."""

from tests.support.raft.quorum import Faults, SimQuorum

from ottla.raft import effects as fx
from ottla.raft.replica import Replica


def test_persist_is_the_first_effect_of_every_step() -> None:
    quorum = SimQuorum(1, Faults(crash_every_ms=400))
    steps: list[list[fx.Effect]] = []
    carry_out = quorum._carry_out

    def noting(node: object, replica: Replica, effects: list[fx.Effect]) -> None:
        steps.append(effects)
        carry_out(node, replica, effects)  # type: ignore[arg-type]

    quorum._carry_out = noting  # type: ignore[method-assign, assignment]
    quorum.run(3000)
    persisted = [step for step in steps if any(isinstance(each, fx.Persist) for each in step)]
    assert len(persisted) > 5
    assert all(isinstance(step[0], fx.Persist) for step in persisted)
    assert all(sum(isinstance(each, fx.Persist) for each in step) == 1 for step in persisted)
