"""The cases of the coordinators' sweep about transactions: begin, add, end, list, describe."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.sweep.cases import every_version
from tests.support.sweep.story import Story
from tests.support.sweep.sweep import Case, versions_of

from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

BROKERS_SINCE = 4
"""The first version of AddPartitionsToTxn that brokers send."""
NOBODY = 999_999


class ProducerCases:
    """Transactions of `story`'s producer. A request may depend on earlier responses, so cases are built in their turn."""

    def __init__(self, story: Story) -> None:
        self._story = story

    def all(self) -> Iterator[Case]:
        yield from self._unknown()
        for version in versions_of(ApiKey.ADD_PARTITIONS_TO_TXN):
            if version < BROKERS_SINCE:
                yield from self._adding(version)
        for version in versions_of(ApiKey.ADD_OFFSETS_TO_TXN):
            yield from self._adding_offsets(version)
        for version in versions_of(ApiKey.END_TXN):
            yield from self._ending(version)
        yield from self._verifying()
        yield from self._markers()
        yield from self._queries()

    def _case(self, name: str, api_key: int, version: int, make: Callable[[], Message]) -> Case:
        return Case(f"{APIS[api_key].name}: {name}", version, make)

    def _producer(self, name: str, epoch: int = 0) -> dict[str, Any]:
        story = self._story
        return {"transactional_id": name, "producer_id": story.producer_id, "producer_epoch": story.producer_epoch + epoch}

    def _unknown(self) -> Iterator[Case]:
        nobody: dict[str, Any] = {"transactional_id": "no such", "producer_id": NOBODY, "producer_epoch": 0}
        yield from every_version(
            "add offsets of nobody", ApiKey.ADD_OFFSETS_TO_TXN, lambda _: AddOffsetsToTxnRequest(group_id="g", **nobody)
        )
        yield from every_version("end of nobody", ApiKey.END_TXN, lambda _: EndTxnRequest(committed=True, **nobody))
        yield from every_version(
            "end without a name", ApiKey.END_TXN, lambda _: EndTxnRequest(committed=True, **(nobody | {"transactional_id": ""}))
        )
        yield from every_version(
            "add partitions of nobody",
            ApiKey.ADD_PARTITIONS_TO_TXN,
            lambda v: _partitions(v, nobody, [("sweep", 0)]),
        )
        yield from every_version("describe nobody", ApiKey.DESCRIBE_TRANSACTIONS, lambda _: _described("no such", ""))

    def _adding(self, version: int) -> Iterator[Case]:
        name, api_key = f"adding{version}", ApiKey.ADD_PARTITIONS_TO_TXN

        def first() -> Message:
            self._story.begin_transaction(name)
            return _partitions(version, self._producer(name), [("sweep", 0), ("absent", 0)])

        yield self._case("add, one unknown", api_key, version, first)
        yield self._case("add", api_key, version, lambda: _partitions(version, self._producer(name), [("sweep", 0)]))
        yield self._case("add again", api_key, version, lambda: _partitions(version, self._producer(name), [("sweep", 0)]))
        yield self._case(
            "add, old epoch", api_key, version, lambda: _partitions(version, self._producer(name, -1), [("sweep", 1)])
        )
        yield self._case(
            "add, later epoch", api_key, version, lambda: _partitions(version, self._producer(name, 1), [("sweep", 1)])
        )
        other = {"producer_id": NOBODY}
        yield self._case(
            "add, other producer", api_key, version, lambda: _partitions(version, self._producer(name) | other, [("sweep", 1)])
        )
        yield self._case("add nothing", api_key, version, lambda: _partitions(version, self._producer(name), []))

    def _adding_offsets(self, version: int) -> Iterator[Case]:
        name, api_key = f"offsets{version}", ApiKey.ADD_OFFSETS_TO_TXN

        def first() -> Message:
            self._story.begin_transaction(name)
            return AddOffsetsToTxnRequest(group_id="g", **self._producer(name))

        def request(group_id: str, epoch: int = 0) -> Callable[[], Message]:
            return lambda: AddOffsetsToTxnRequest(group_id=group_id, **self._producer(name, epoch))

        yield self._case("add offsets", api_key, version, first)
        yield self._case("add offsets of no group", api_key, version, request(""))
        yield self._case("add offsets, old epoch", api_key, version, request("g", -1))
        yield self._case("add offsets, later epoch", api_key, version, request("g", 1))

    def _ending(self, version: int) -> Iterator[Case]:
        name = f"ending{version}"

        def end(is_commit: bool, epoch: int = 0) -> Message:
            return EndTxnRequest(committed=is_commit, **self._producer(name, epoch))

        def not_begun() -> Message:
            self._story.begin_transaction(name)
            return end(True)

        def begun(is_commit: bool) -> Message:
            self._story.begin_transaction(name, "ended")
            return end(is_commit)

        def after_all() -> Message:
            self._story.await_end(name)
            return _described(name)

        yield self._case("end what has not begun", ApiKey.END_TXN, version, not_begun)
        yield self._case("commit", ApiKey.END_TXN, version, lambda: begun(True))
        yield self._case(f"describe a commit {version}", ApiKey.DESCRIBE_TRANSACTIONS, 0, after_all)
        if version < 5:  # later ones raise the producer's epoch, so that the result depends on timing
            yield self._case("commit again", ApiKey.END_TXN, version, lambda: end(True))
            yield self._case("abort what is committed", ApiKey.END_TXN, version, lambda: end(False))
        yield self._case("abort", ApiKey.END_TXN, version, lambda: begun(False))
        yield self._case(f"describe an abort {version}", ApiKey.DESCRIBE_TRANSACTIONS, 0, after_all)
        yield self._case("end, later epoch", ApiKey.END_TXN, version, lambda: end(True, 5))
        yield self._case("end, old epoch", ApiKey.END_TXN, version, lambda: end(True, -1))

    def _verifying(self) -> Iterator[Case]:
        api_key = ApiKey.ADD_PARTITIONS_TO_TXN
        for version in versions_of(api_key):
            if version < BROKERS_SINCE:
                continue
            name = f"verified{version}"

            def first(version: int = version, name: str = name) -> Message:
                self._story.begin_transaction(name)
                return _partitions(version, self._producer(name), [("sweep", 0)])

            def verify(index: int, version: int = version, name: str = name) -> Message:
                request = _partitions(version, self._producer(name), [("sweep", index)])
                request.transactions[0].verify_only = True
                return request

            yield self._case("a broker adds", api_key, version, first)
            yield self._case("a broker verifies", api_key, version, lambda verify=verify: verify(0))  # type: ignore[misc]
            yield self._case("a broker verifies what is not there", api_key, version, lambda verify=verify: verify(1))  # type: ignore[misc]

    def _markers(self) -> Iterator[Case]:
        def marker(name: str, index: int) -> Message:
            topic = WritableTxnMarkerTopic(name=name, partition_indexes=[index])
            written = WritableTxnMarker(producer_id=NOBODY, producer_epoch=1, transaction_result=True, topics=[topic])
            return WriteTxnMarkersRequest(markers=[written])

        for name, (topic, index) in {
            "a marker of nobody": ("sweep", 0),
            "a marker in no partition": ("sweep", 9),
            "a marker in no topic": ("absent", 0),
            "a marker among the offsets": ("__consumer_offsets", 0),
        }.items():
            yield from every_version(name, ApiKey.WRITE_TXN_MARKERS, lambda _, topic=topic, index=index: marker(topic, index))

    def _queries(self) -> Iterator[Case]:
        lists: dict[str, Callable[[int], Message | None]] = {
            "list": lambda _: ListTransactionsRequest(),
            "list completed": lambda _: ListTransactionsRequest(state_filters=["CompleteCommit", "CompleteAbort"]),
            "list no state": lambda _: ListTransactionsRequest(state_filters=["nonsense", "ongoing"]),
            "list of nobody": lambda _: ListTransactionsRequest(producer_id_filters=[NOBODY]),
            "list long ones": lambda v: ListTransactionsRequest(duration_filter=10**7) if v else None,
            "list by pattern": lambda v: ListTransactionsRequest(transactional_id_pattern="ending[12]") if v >= 2 else None,
            "list by a wrong pattern": lambda v: ListTransactionsRequest(transactional_id_pattern="[") if v >= 2 else None,
        }
        for name, make in lists.items():
            yield from every_version(name, ApiKey.LIST_TRANSACTIONS, make)
        yield from every_version(
            "describe", ApiKey.DESCRIBE_TRANSACTIONS, lambda _: _described("adding3", "ending0", "offsets1")
        )


def _partitions(version: int, producer: dict[str, Any], partitions: list[tuple[str, int]]) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in partitions]
    if version >= BROKERS_SINCE:
        return AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(topics=topics, **producer)])
    old = {f"v3_and_below_{name}": value for name, value in producer.items()}
    return AddPartitionsToTxnRequest(v3_and_below_topics=topics, **old)


def _described(*names: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(names))
