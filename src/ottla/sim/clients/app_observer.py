"""What the checkers learn from the requests of a transactional producer: its ids and epochs, and when it asks for a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.client_core.machine import Request
from ottla.client_core.producer.transaction_requests import error_in
from ottla.errors.codes import error_name
from ottla.sim.checkers.checker import Commit, Handed, Place, Transaction, Violation
from ottla.sim.clients.observer import ClientObserver
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdResponse
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from ottla.sim.clients.client import Client


@dataclass(eq=False)
class Ending:
    """A transaction that the program has asked to end, with the offsets that it sent to it."""

    transaction: Transaction
    offsets: dict[Place, int]
    is_commit: bool = True
    commits: list[Commit] = field(default_factory=list)
    """One for each attempt."""


class AppObserver(ClientObserver):
    """`ending` is set while the program waits for the end of its transaction."""

    def __init__(self, client: Client, transactional_id: str, group: str) -> None:
        super().__init__(client)
        self.ending: Ending | None = None
        self.unknown_endings = 0
        """How often an EndTxn got no answer."""
        self._transactional_id = transactional_id
        self._group = group

    def on_sent(self, message: Any) -> None:
        if not isinstance(message, EndTxnRequest):
            return
        self.stage.ending_sent.set()
        ending = self.ending
        if ending is None or ending.is_commit is not message.committed:
            asked = "nothing" if ending is None else f"to {'commit' if ending.is_commit else 'abort'} {ending.transaction.name}"
            raise Violation(
                f"{self.client.name} sends EndTxn with committed={message.committed}, and the program has asked {asked}"
            )
        if ending.is_commit:
            self.stage.checkers.commit_requested(ending.transaction)
            epoch = message.producer_epoch
            commit = Commit(self._group, "transaction", self.client.name, None, epoch, ending.offsets, self.stage.now_s())
            ending.commits.append(commit)
            self.stage.checkers.commit_sent(commit)

    def on_failure(self, message: Any) -> None:
        if isinstance(message, EndTxnRequest):
            self.unknown_endings += 1

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        if isinstance(response, ProduceResponse):
            self._produced(request, response, sent_s)
            return
        kind = type(message).__name__.removesuffix("Request")
        if isinstance(message, EndTxnRequest | TxnOffsetCommitRequest) or isinstance(response, InitProducerIdResponse):
            error = error_in(response)
            if error is not None:
                self.client.note("refused", f"{kind} {error_name(error.code)}")
                return
        if isinstance(response, InitProducerIdResponse):
            self._handed(response, sent_s)
        elif isinstance(message, TxnOffsetCommitRequest) or (isinstance(message, EndTxnRequest) and message.committed):
            self._obeyed((message.producer_id, message.producer_epoch), sent_s)
        if isinstance(message, EndTxnRequest) and response.producer_id >= 0:
            self._handed(response, sent_s)

    def _produced(self, request: Request, response: ProduceResponse, sent_s: float) -> None:
        for topic in response.responses:
            name = request.context.names.get(topic.topic_id, topic.name)
            for part in topic.partition_responses:
                if part.error_code:
                    self.client.note("refused", f"{name}-{part.index} {error_name(part.error_code)}")
                else:
                    self._obeyed(request.context.batches[name, part.index].producer, sent_s)

    def _handed(self, answer: Any, sent_s: float) -> None:
        self.client.note("producer id", f"{answer.producer_id} epoch {answer.producer_epoch}")
        handed = Handed(self._transactional_id, answer.producer_id, answer.producer_epoch, sent_s, self.stage.now_s())
        self.stage.checkers.producer_handed(handed)

    def _obeyed(self, producer: tuple[int, int], sent_s: float) -> None:
        self.stage.checkers.producer_obeyed(self._transactional_id, *producer, sent_s)
