"""Produce, for requests of transactional producers: records wait until their transaction is known in their partitions.

The first batch of a transaction in a partition needs the word of the transaction's coordinator. Producers of transaction
version 2 (Produce from version 12 on) have their partition added by it; those before have added it themselves, and it is only
asked whether they have (transaction.partition.verification.enable). Without that, a batch that arrives late could open a
transaction that is never ended. The request waits as a whole, and no other of its connection is handled until then, so that the
order of each partition is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, cast

from ottla.broker.handlers.data import produce
from ottla.broker.requests.apis import is_transactional
from ottla.broker.requests.context import Handled, Pending, RequestContext
from ottla.broker.runtime.coordinators.verification import Begun
from ottla.coordinator.contract import Producer
from ottla.errors import KafkaError, drop_frames
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition
from ottla.log.producers.append_checks import VerificationState
from ottla.records.layout import HEADER_SIZE, PRODUCER_ID_AT

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.wire.messages.produce import ProduceRequest

IMPLICIT_ADD_SINCE = 12
ABORTABLE_SINCE = 11
"""From this version on a producer knows TRANSACTION_ABORTABLE."""

_PRODUCER = Struct(">qhi")
"""The producer's id and epoch and the first sequence, which follow each other in a batch's header."""

Verified = Mapping[TopicPartition, VerificationState | KafkaError | None]
"""What appends need: proof that the coordinator knows of the transaction, or why nothing is appended. None: it is open there.

Partitions that this node did not lead when the coordinator was asked are missing: nothing is appended to them.
"""

_UNAVAILABLE = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def hold(context: RequestContext, request: ProduceRequest) -> Handled:
    """Ask the coordinator about the transactions that are new to their partitions, then append everything."""
    led = _led(context, request)
    batches = _transactional_batches(led)
    producer = batches[0][1] if batches else None
    if any(other != producer for _, other, _ in batches):
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"records of more than one producer came in one request of {request.transactional_id!r}",
        )
    is_add = context.version >= IMPLICIT_ADD_SINCE
    if not (is_add or context.services.settings.current.log.transaction_partition_verification_enable):
        return produce.handle(context, request, produce.NOT_ASKED)
    verified: dict[TopicPartition, VerificationState | KafkaError | None] = {partition.name: None for partition, _ in led}
    if producer is None:
        return produce.handle(context, request, verified)
    unknown: list[TopicPartition] = []

    def begin(is_first: bool = False) -> None:
        """Begin to verify, also when the coordinator is asked again: a marker that came meanwhile ended what was begun."""
        now_ms = context.services.world.clock.now_ms()
        for partition, (producer_id, epoch), sequence in batches:
            if not is_first and partition.name not in unknown:
                continue  # the coordinator is not asked about it
            try:
                state = partition.log.producers.begin_verification(producer_id, sequence, epoch, is_add, now_ms)
            except KafkaError as refused:
                verified[partition.name] = drop_frames(refused)
                continue
            if state is not None:
                verified[partition.name] = state
                if is_first:
                    unknown.append(partition.name)

    def is_dropped() -> bool:
        return any(
            isinstance(state := verified.get(partition.name), VerificationState)
            and partition.log.producers.verification(producer_id) is not state
            and not partition.log.producers.has_ongoing_transaction(producer_id, epoch)
            for partition, (producer_id, epoch), _ in batches
        )

    begin(is_first=True)
    if not unknown:
        return produce.handle(context, request, verified)
    held = HeldProduce(context, request, verified)
    context.services.coordinators.transactions.begin_verification(
        cast(str, request.transactional_id), Producer(*producer), unknown, is_add, held.answered, Begun(begin, is_dropped)
    )
    return held


def _led(context: RequestContext, request: ProduceRequest) -> list[tuple[Partition, memoryview | None]]:
    """The partitions of the request that this node leads, with their records."""
    partitions, found = context.services.partitions, []
    for topic in request.topic_data:
        held = (
            partitions.by_id.get(topic.topic_id)
            if context.version >= produce.TOPIC_IDS_SINCE
            else partitions.by_name.get(topic.name)
        )
        for data in topic.partition_data:
            partition = held.get(data.index) if held is not None else None
            if partition is not None and partition.is_leading:
                found.append((partition, cast("memoryview | None", data.records)))
    return found


def _transactional_batches(
    led: list[tuple[Partition, memoryview | None]],
) -> list[tuple[Partition, tuple[int, int], int]]:
    """(partition, (producer id, epoch), first sequence) of what belongs to a transaction.

    What cannot be appended is refused later.
    """
    found = []
    for partition, records in led:
        if records is None or len(records) < HEADER_SIZE or not is_transactional(records):
            continue
        producer_id, epoch, sequence = _PRODUCER.unpack_from(records, PRODUCER_ID_AT)
        if producer_id >= 0:
            found.append((partition, (producer_id, epoch), sequence))
    return found


class HeldProduce(Pending):
    """A produce request that waits for the coordinator of its transaction."""

    __slots__ = ("_context", "_request", "_verified")

    holds_back = True

    def __init__(
        self,
        context: RequestContext,
        request: ProduceRequest,
        verified: dict[TopicPartition, VerificationState | KafkaError | None],
    ) -> None:
        super().__init__()
        self._context = context
        self._request = request
        self._verified = verified

    def answered(self, codes: dict[TopicPartition, int]) -> None:
        """The coordinator has spoken: append what may be appended."""
        for name, code in codes.items():
            if code != ErrorCode.NONE:
                self._verified[name] = _refusal(self._context.version, name, code)
        if self.is_done:
            return  # the connection has gone; nothing was promised
        try:
            handled = produce.handle(self._context, self._request, self._verified)
        except Exception as failure:
            self.fail(failure)
            return
        if isinstance(handled, Pending):
            handled.deliver_to(self._finish)
        else:
            self.complete(handled)


def _refusal(version: int, name: TopicPartition, code: int) -> KafkaError:
    """Why records of a transaction are not appended, in a code that a producer of `version` knows what to do with."""
    is_old = version < IMPLICIT_ADD_SINCE
    if code in _UNAVAILABLE or (code == ErrorCode.CONCURRENT_TRANSACTIONS and is_old):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,  # not what it is, but what makes older producers try again
            f"it cannot be told now whether {name} is in the transaction ({error_name(code)}): try again",
        )
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    return KafkaError(code, f"records of a transaction for {name} are refused by its coordinator: {error_name(code)}")
