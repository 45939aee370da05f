"""Requests between the cases of a sweep over coordinators: members join and leave, transactions begin and end.

These requests are sent in one version each and use earlier responses; the cases themselves vary the version.
"""

from typing import Any

from tests.support.peers.group_requests import until
from tests.support.peers.raw_client import RawClient

from ottla.wire.base import Message
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS, TRANSACTIONS = 0, 1
SUBSCRIBED_TO_SWEEP = b"\0\1\0\0\0\1\0\5sweep\xff\xff\xff\xff\0\0\0\0"
"""The subscription of a member that reads the topic `sweep`."""


class Story:
    """Sends requests outside of the cases, and remembers the responses."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.member_id = ""
        self.generation = -1
        self.producer_id = -1
        self.producer_epoch = -1

    def ask(self, request: Message, version: int) -> Any:
        with RawClient.to(self._bootstrap, client_id="sweep") as client:
            return client.request(request, version)

    def await_coordinators(self) -> None:
        """Have both internal topics created, and wait until they are served."""
        for kind in (GROUPS, TRANSACTIONS):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
            until(lambda request=request: self.ask(request, 4).coordinators[0].error_code == 0, "a coordinator")  # type: ignore[misc]
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        until(lambda: self.ask(fetch, 8).groups[0].error_code == 0, "the group coordinator")
        until(lambda: self.ask(ListGroupsRequest(), 4).error_code == 0, "the list of groups")
        self.begin_transaction("early")

    # -- groups

    def join(self, group_id: str) -> None:
        """Let one member join and get its assignment."""
        protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_SWEEP)
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        joined = self.ask(request, 3)
        assert joined.error_code == 0
        self.member_id, self.generation = joined.member_id, joined.generation_id
        synced = self.ask(
            SyncGroupRequest(
                group_id=group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"mine")],
            ),
            3,
        )
        assert synced.error_code == 0

    def leave(self, group_id: str) -> None:
        request = LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=self.member_id)])
        assert self.ask(request, 3).error_code == 0

    # -- transactions

    def begin_transaction(self, transactional_id: str, group_id: str | None = None) -> None:
        """Begin a transaction; with a group, add its offsets to the transaction."""
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answers: list[Any] = []
        until(lambda: answers.append(self.ask(request, 4)) or answers[-1].error_code == 0, "a producer id")  # type: ignore[func-returns-value]
        self.producer_id, self.producer_epoch = answers[-1].producer_id, answers[-1].producer_epoch
        if group_id is not None:
            added = self.ask(
                AddOffsetsToTxnRequest(
                    transactional_id=transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.producer_epoch,
                    group_id=group_id,
                ),
                3,
            )
            assert added.error_code == 0

    def end_transaction(self, transactional_id: str, is_commit: bool, version: int, group_id: str) -> None:
        """End it, and wait until its offsets are committed or dropped. Versions from 5 on raise the producer's epoch."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=is_commit,
        )
        answer = self.ask(request, version)
        assert answer.error_code == 0
        until(lambda: self._is_stable(group_id), "the end of the transaction in its group")
        self.await_end(transactional_id)

    def await_end(self, transactional_id: str) -> None:
        """Wait until all markers of a transaction that was ended are written."""
        describe = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        until(
            lambda: self.ask(describe, 0).transaction_states[0].transaction_state.startswith("Complete"),
            "the end of the transaction",
        )

    def _is_stable(self, group_id: str) -> bool:
        group = OffsetFetchRequestGroup(group_id=group_id)
        group.topics = [OffsetFetchRequestTopics(name="sweep", partition_indexes=[0, 1])]
        (topic,) = self.ask(OffsetFetchRequest(groups=[group], require_stable=True), 8).groups[0].topics
        return not any(each.error_code for each in topic.partitions)
