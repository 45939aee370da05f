"""The records that a controller writes when it becomes active."""

import asyncio

import pytest
from tests.support.nodes.quorum_node import DIRECTORY, QuorumNode

from ottla.broker.runtime.activation import first_records, is_new_cluster, later_records, read_bootstrap
from ottla.errors import CorruptFile
from ottla.metadata.image.image import MetadataImage
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    RegisterControllerRecord,
)


def level(name: str, number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=number)


def kinds(records: list[Message]) -> list[str]:
    return [type(record).__name__.removesuffix("Record") for record in records]


def test_an_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    records = first_records([level("metadata.version", 30), level("group.version", 1)], False, 1)
    assert kinds(records) == ["BeginTransaction", "FeatureLevel", "FeatureLevel", "EndTransaction"]
    assert records[0] == BeginTransactionRecord(name="Bootstrap records")


def test_eligible_leader_replicas_set_min_isr_for_the_cluster() -> None:
    records = first_records([level("metadata.version", 30), level("eligible.leader.replicas.version", 1)], False, 2)
    assert records[-2] == ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    assert isinstance(records[-1], EndTransactionRecord)


def test_an_old_metadata_version_has_no_transactions() -> None:
    assert kinds(first_records([level("metadata.version", 12)], False, 1)) == ["FeatureLevel"]


def test_bootstrap_records_that_were_cut_short_are_written_again() -> None:
    records = first_records([level("metadata.version", 30)], True, 1)
    assert kinds(records) == ["AbortTransaction", "BeginTransaction", "FeatureLevel", "EndTransaction"]


def test_open_transaction_in_a_used_log_is_aborted() -> None:
    assert later_records(MetadataImage(features={"metadata.version": 30})) == []
    cut = MetadataImage(features={"metadata.version": 30}, open_transaction=())
    assert later_records(cut) == [AbortTransactionRecord(reason="Controller failover")]
    assert not is_new_cluster(cut)
    assert is_new_cluster(MetadataImage(open_transaction=(level("metadata.version", 30),)))


def test_new_cluster_writes_the_same_records_as_apache() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        await node.start()
        batches = [batch for batch in node.quorum.log.batches(0) if len(batch.records)]
        assert kinds(list(batches[0].records)) == [
            "BeginTransaction",
            *["FeatureLevel"] * 4,
            "Config",
            "EndTransaction",
        ]
        registration = batches[1].records[0]
        assert isinstance(registration, RegisterControllerRecord)
        assert [(each.name, each.host, each.port) for each in registration.end_points] == [("CONTROLLER", "localhost", 9093)]
        assert "metadata.version" in [each.name for each in registration.features]
        first = registration.incarnation_id
        await node.close()
        await node.start()
        assert node.loader.published.cluster.controllers[1].incarnation_id != first, "every start is another incarnation"

    asyncio.run(run())


def test_an_old_cluster_registers_no_controllers() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format(release_version="3.6")
        await node.start()
        assert node.loader.published.metadata_version == 14
        assert not node.loader.published.cluster.controllers

    asyncio.run(run())


def test_bootstrap_interrupted_on_disk_is_completed_at_the_next_start() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        await node.open()
        list(node.quorum.load())
        await node.quorum.elect()
        begun = [BeginTransactionRecord(name="Bootstrap records"), level("metadata.version", 30)]
        node.quorum.append(node.quorum.prepare(begun, 7))
        await node.quorum.log.sync()
        node.crash()
        await node.start()
        assert node.loader.published.features["group.version"] == 1
        assert node.loader.published.open_transaction is None

    asyncio.run(run())


def test_an_empty_log_without_bootstrap_records_is_refused() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        await node.disk.remove(f"{DIRECTORY}/bootstrap.checkpoint")
        with pytest.raises(CorruptFile, match="Format the directory"):
            await node.start()
        with pytest.raises(CorruptFile):
            read_bootstrap(node.disk, DIRECTORY)

    asyncio.run(run())
