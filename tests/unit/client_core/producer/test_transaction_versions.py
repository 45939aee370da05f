"""Which transaction.version a producer uses, and when it changes: only together with a new epoch."""

import pytest
from tests.support.producers.transaction_world import TransactionWorld

from ottla.client_core.producer.transactions import State


def test_client_that_knows_only_version_1_adds_partitions_itself() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.manager.version_max = 1
    world.run(world.manager.initialize())
    world.manager.begin()
    assert not world.manager.is_implicit


@pytest.mark.parametrize("is_commit", [True, False])
def test_upgrade_to_version_2_takes_a_new_epoch_first(is_commit: bool) -> None:
    """Else a leader without the last transaction's marker takes the next one's records for part of the last one."""
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.metadata.learn_features(2, {"transaction.version": 2})
    world.run(world.manager.end(is_commit=is_commit), ["answer", "busy"])
    assert world.manager.state is State.READY
    assert world.manager.is_implicit
    assert world.idempotence.producer == (7, 1)


def test_upgrade_waits_for_the_end_of_a_transaction_with_requests() -> None:
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.metadata.learn_features(2, {"transaction.version": 2})
    for _ in range(2):
        world.manager.begin()
        assert not world.manager.is_implicit
        assert world.manager.end(is_commit=True).is_done, "nothing was sent, so nothing has to be asked"
    world.manager.begin()
    world.send()
    world.run(world.manager.end(is_commit=True))
    assert world.manager.is_implicit


def test_downgrade_to_version_1_needs_no_further_epoch() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.metadata.learn_features(2, {"transaction.version": 1})
    world.run(world.manager.end(is_commit=True))
    assert not world.manager.is_implicit
    assert world.idempotence.producer == (7, 1)
