"""Sets the producer epoch of a transactional id close to its maximum, so that a run reaches the end of the epochs.

This is the only change in a run that does not come over the wire: 32,000 InitProducerId requests would take too long. It is
still a decision of the coordinator, with a record in its log that every later life replays.
"""

from __future__ import annotations

import asyncio

from ottla.broker.node import Node
from ottla.broker.runtime.coordinators.transactions import NoProducerId
from ottla.coordinator.contract import Effects, Instant, Reply
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import Transaction
from ottla.errors import KafkaError
from ottla.sim.clients.client import BACKOFF_S_MAX, LinkError
from ottla.sim.clients.group_client import TRANSACTION, GroupClient
from ottla.sim.machine import Machine

RETRY_S = 0.05


async def age(machine: Machine, client: GroupClient, transactional_id: str, epoch: int) -> None:
    """Give an unused transactional id a producer in `epoch`. `client` first has the coordinator's topic created."""
    while True:
        try:
            await client.find_coordinator(TRANSACTION, transactional_id)
            break
        except LinkError:
            await client.pause(BACKOFF_S_MAX)
    await machine.within(lambda node: _age(node, transactional_id, epoch))
    client.note("aged", f"{transactional_id} epoch {epoch}")


async def _age(node: Node, transactional_id: str, epoch: int) -> None:
    def decide(shard: TransactionShard, reply: Reply, now: Instant) -> Effects:
        aged = Transaction(transactional_id, shard.table.new_producer_id(), epoch, TransactionState.EMPTY, timeout_ms=1_000)
        return Effects.answer(reply, None, [shard.table.record(aged._replace(update_ms=now.wall_ms))])

    transactions = node.services.coordinators.transactions
    while True:
        try:
            await transactions.call(transactional_id, decide)
            return
        except NoProducerId:
            await transactions.wait_for_producer_id()
        except KafkaError:
            await asyncio.sleep(RETRY_S)  # the coordinator is still loading
