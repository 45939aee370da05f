"""Node 1 with both coordinators, on a simulated disk in virtual time. Requests go directly to the handlers.

async def scenario() -> None:
    node = await TransactionNode.open()
    producer = await node.initialise("id")
    await node.produce("id", producer, 0)
virtual(scenario())
"""

from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.support.logs.batches import make_batch, values_of
from tests.support.nodes.held_partitions import HeldPartitions, only_answer, waiting

from ottla.broker.handlers.transactions import end_txn, init_producer_id
from ottla.broker.requests.context import Pending
from ottla.broker.runtime.coordinators.coordinators import Coordinators
from ottla.broker.runtime.coordinators.transactions import TransactionRuntime
from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.transaction import NAMES
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.log.read import Isolation
from ottla.metadata.image.delta import MetadataDelta
from ottla.records.batch import iterate_batches
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata_records import FeatureLevelRecord
from ottla.wire.messages.produce import PartitionProduceResponse

TOPIC = "t"


class Ids:
    """Producer ids; `left` are reserved. `wait_and_take` reserves more, unless the controller refuses."""

    def __init__(self) -> None:
        self.next = count(5000)
        self.left = 10**6
        self.is_refused = False

    def take(self) -> int | None:
        if self.left <= 0:
            return None
        self.left -= 1
        return next(self.next)

    async def wait_and_take(self) -> int:
        if self.is_refused:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "none now")
        return next(self.next)


class TransactionNode:
    """A node with topic `t` of two partitions, and both internal topics of one partition each. Get it from `open`."""

    def __init__(self, held: HeldPartitions) -> None:
        self.held = held
        self.ids = Ids()
        self._join()

    def _join(self) -> None:
        held = self.held
        ids: Any = self.ids
        self.coordinators = Coordinators(held.services.world, held.settings, held.partitions, held.metadata, ids)
        held.services.coordinators = self.coordinators
        held.services.producer_ids = ids

    @classmethod
    async def open(
        cls, transaction_version: int = 2, settings: Mapping[str, str] | None = None, **topic: object
    ) -> "TransactionNode":
        held = await HeldPartitions.open(settings)
        await held.commit(FeatureLevelRecord(name="transaction.version", feature_level=transaction_version))
        await held.make_topic(TOPIC, 2, topic)
        for name in (TRANSACTIONS_TOPIC, OFFSETS_TOPIC):
            await held.make_topic(name, 1, {"cleanup.policy": "compact"})
        node = cls(held)
        node.coordinators.follow()
        return node

    @property
    def host(self) -> TransactionRuntime:
        return self.coordinators.transactions

    def state(self, name: str) -> str:
        return NAMES[self.host.shard_for(name).shard.table.by_id[name].state]

    def follow(self) -> None:
        """Let the coordinators follow a change of the cluster."""
        self.coordinators.metadata_changed(MetadataDelta(self.held.metadata.image), self.held.metadata.image)

    async def lead(self, leader: int, index: int = 0) -> None:
        """Make another node, or none (-1), the leader of a partition of `t`."""
        await self.held.change(TOPIC, index, leader=leader)
        self.follow()

    async def crash(self) -> None:
        await self.held.restart(crash=True)
        self._join()
        self.coordinators.follow()

    # -- requests

    async def ask(self, handler: Any, request: Any, version: int) -> Any:
        """The handler's response; a refusal goes through the handler's `refuse`."""
        context = self.held.context(request.KEY, version)
        try:
            handled = handler.handle(context, request)
            return await waiting(handled) if isinstance(handled, Pending) else handled
        except KafkaError as error:
            return handler.refuse(context, request, error)

    async def initialise(self, name: str, timeout_ms: int = 60_000) -> Producer:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        response = await self.ask(init_producer_id, request, 5)
        assert response.error_code == 0, response
        return Producer(response.producer_id, response.producer_epoch)

    async def end(self, name: str, producer: Producer, commit: bool, version: int = 5) -> tuple[int, Producer]:
        request = EndTxnRequest(transactional_id=name, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit)
        response = await self.ask(end_txn, request, version)
        return response.error_code, Producer(response.producer_id, response.producer_epoch)

    def send(
        self, name: str, producer: Producer, sequence: int, value: bytes = b"v", *, index: int = 0, version: int = 12
    ) -> Any:
        """The produce handler's result for one batch of a transaction."""
        batch = make_batch(value, producer=(*producer, sequence), transactional=True)
        return self.held.produce(TOPIC, index, batch, version=version, transactional_id=name)

    async def produce(self, *arguments: Any, **more: Any) -> PartitionProduceResponse:
        handled = self.send(*arguments, **more)
        return only_answer(await waiting(handled) if isinstance(handled, Pending) else handled)

    # -- reading

    def values(self, index: int = 0, committed: bool = True) -> list[bytes | None]:
        """The values that a consumer of a partition of `t` gets: without markers and aborted records."""
        isolation = Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK
        info = self.held.partition(TOPIC, index).read(0, 1 << 20, isolation)
        if info.records is None:
            return []
        data = info.records.read()
        aborted = {(each.producer_id, each.first_offset) for each in info.aborted or ()}
        found: list[bytes | None] = []
        for batch in iterate_batches(data):
            if not batch.is_control and not (committed and (batch.producer_id, batch.base_offset) in aborted):
                found += values_of(bytes(batch.data))
        return found
