"""Offsets of transactions through a whole node: they count when the transaction commits, also over kills and restarts."""

from typing import Any

import pytest
from tests.support.peers.group_requests import COORDINATOR_LOAD_IN_PROGRESS, GroupRequests, until

from ottla.errors.codes import ErrorCode
from ottla.testing import Broker
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

IMPLICIT_ADD = 5
RETRIED = {COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR}


class Transaction:
    """One transaction of the producer `x`, in the way of one version of TxnOffsetCommit."""

    def __init__(self, groups: GroupRequests, version: int) -> None:
        self.groups = groups
        self.version = version
        groups.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4)
        begun = self._asked(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 5)
        self.producer = {"transactional_id": "x", "producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        if version < IMPLICIT_ADD:
            self._asked(AddOffsetsToTxnRequest(group_id="g", **self.producer), 3)

    def _asked(self, request: Any, version: int) -> Any:
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(self.groups.ask(request, version))
            return answers[-1].error_code not in RETRIED

        until(is_answered, "an answer")
        assert answers[-1].error_code == 0
        return answers[-1]

    def commit(self, index: int, offset: int, **extra: Any) -> int:
        part = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        topic = TxnOffsetCommitRequestTopic(name="t", partitions=[part])
        request = TxnOffsetCommitRequest(group_id="g", topics=[topic], **(self.producer | extra))
        code: int = self.groups.ask(request, self.version).topics[0].partitions[0].error_code
        return code

    def end(self, is_commit: bool) -> None:
        self._asked(EndTxnRequest(committed=is_commit, **self.producer), 5 if self.version >= IMPLICIT_ADD else 3)


@pytest.mark.parametrize("version", [3, IMPLICIT_ADD])
@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_count_with_their_transaction_after_a_kill(version: int, is_commit: bool) -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        with GroupRequests(broker.bootstrap_servers) as groups:
            groups.commit("g", {("t", 0): 1, ("t", 1): 1})
            transaction = Transaction(groups, version)
            assert transaction.commit(0, 50) == 0
            assert transaction.commit(2, 50) == 0
        broker.kill()
        broker.start()
        with GroupRequests(broker.bootstrap_servers) as groups:
            transaction.groups = groups
            assert groups.fetch("g") == {"g": {("t", 0): 1, ("t", 1): 1}}
            assert groups.fetch("g", require_stable=True) == {"g": {("t", 0): -1, ("t", 1): 1}}
            assert transaction.commit(1, 51) == 0, "the transaction goes on"
            transaction.end(is_commit)
            until(lambda: groups.fetch("g", require_stable=True)["g"]["t", 0] != -1, "the end of the transaction")
            at_last = {("t", 0): 50, ("t", 1): 51, ("t", 2): 50} if is_commit else {("t", 0): 1, ("t", 1): 1}
            assert groups.fetch("g") == {"g": at_last}
        broker.restart()
        with GroupRequests(broker.bootstrap_servers) as groups:
            assert groups.fetch("g", require_stable=True) == {"g": at_last}


def test_a_fenced_producer_commits_nothing() -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        with GroupRequests(broker.bootstrap_servers) as groups:
            old = Transaction(groups, IMPLICIT_ADD)
            assert old.commit(0, 50) == 0
            new = Transaction(groups, IMPLICIT_ADD)
            assert old.commit(1, 51) == ErrorCode.INVALID_PRODUCER_EPOCH
            assert new.commit(2, 52) == 0
            new.end(True)
            until(lambda: groups.fetch("g", require_stable=True)["g"] == {("t", 2): 52}, "the end of the transaction")


def test_unknown_transactional_id_is_refused() -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        with GroupRequests(broker.bootstrap_servers) as groups:
            assert (
                Transaction(groups, IMPLICIT_ADD).commit(0, 5, transactional_id="other")
                == ErrorCode.INVALID_PRODUCER_ID_MAPPING
            )
