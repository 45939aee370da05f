"""An EndTxn that its program has not asked for is a violation; commits, ids and epochs are reported."""

import pytest
from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.client_core.machine import Request
from ottla.errors import NetworkError
from ottla.sim.checkers.checker import Place, Transaction, Violation
from ottla.sim.clients.app import AppObserver, Ending
from ottla.sim.clients.client import Client, Stage
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


@pytest.mark.parametrize(("is_asked", "text"), [(False, "the program has asked nothing"), (True, r"has asked to abort a\.1")])
def test_an_ending_that_was_not_asked_for_fails_the_run(is_asked: bool, text: str) -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = AppObserver(Client(stage, "a"), "id", "g")
        commit = EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=1, committed=True)
        if is_asked:
            observer.ending = Ending(Transaction("a.1", "id"), {}, is_commit=False)
        observer.sent(Request(commit), commit, 5)
        assert checker.events == []

    with pytest.raises(Violation, match=text):
        on_stage(body)


def test_a_commit_is_reported_with_each_attempt_and_its_new_epoch() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        observer = AppObserver(Client(stage, "a"), "id", "g")
        init = InitProducerIdRequest(transactional_id="id")
        request = Request(init)
        observer.sent(request, init, 5)
        observer.answered(request, InitProducerIdResponse(producer_id=7, producer_epoch=0), 5)
        ending = observer.ending = Ending(Transaction("a.1", "id"), {Place(TOPIC, 0): 4})
        message = EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=0, committed=True)
        lost, answered = Request(message), Request(message)
        observer.sent(lost, message, 5)
        observer.failed(lost, NetworkError("lost"))
        observer.sent(answered, message, 5)
        observer.answered(answered, EndTxnResponse(producer_id=7, producer_epoch=1), 5)
        assert observer.unknown_endings == 1
        assert [commit.offsets for commit in ending.commits] == [{Place(TOPIC, 0): 4}] * 2
        wanted = ["commit_requested", "commit_sent"]
        assert checker.names() == ["producer_handed", *wanted, *wanted, "producer_obeyed", "producer_handed"]
        assert checker.events[-1][1].epoch == 1

    on_stage(body)
