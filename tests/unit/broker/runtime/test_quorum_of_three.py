"""Three replicas of the metadata log on real sockets: election, replication, failover."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from tests.support.nodes.quorum_server import QuorumServer, leader_of, until
from tests.support.servers.kafka_server import free_ports

from ottla.env import World
from ottla.env.real.world import real_world
from ottla.raft.snapshots import SnapshotId
from ottla.wire.log_records import encode_metadata_record


async def three(world: World, folder: Path) -> list[QuorumServer]:
    ports = free_ports(3)
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in enumerate(ports, start=1))
    servers = []
    for node_id, port in enumerate(ports, start=1):
        server = QuorumServer(world, str(folder / f"d{node_id}"), node_id, port, {"controller.quorum.voters": voters})
        await server.format()
        servers.append(server)
    return servers


def with_three(folder: Path, work: Callable[[list[QuorumServer]], Coroutine[None, None, None]]) -> None:
    async def whole() -> None:
        servers = await three(world, folder)
        for server in servers:
            await server.start()
        try:
            await work(servers)
        finally:
            for server in servers:
                if server.is_up:
                    await server.stop()

    with real_world() as world:
        asyncio.run(whole())


async def a_leader(servers: list[QuorumServer]) -> QuorumServer:
    await until(lambda: leader_of(servers) is not None, "a leader")
    leader = leader_of(servers)
    assert leader is not None
    return leader


def test_three_voters_elect_a_leader_and_commit_in_the_same_order(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        leader = await a_leader(servers)
        for number in range(50):
            leader.write(str(number))
        wanted = [str(number) for number in range(50)]
        await until(lambda: all(server.records == wanted for server in servers), "every voter has all records")
        facts = leader.quorum.facts()
        assert [voter.replica_id for voter in facts.voters] == [1, 2, 3]
        assert facts.high_watermark == leader.quorum.end_offset

    with_three(tmp_path, run)


def test_killed_leader_is_followed_by_another_with_every_committed_record(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        wanted: list[str] = []
        for turn in range(4):
            leader = await a_leader(servers)
            epoch = leader.quorum.epoch
            wanted.append(f"turn {turn}")
            leader.write(wanted[-1])
            await until(lambda leader=leader: leader.records == wanted, "the leader commits")
            leader.kill()
            successor = await a_leader(servers)
            assert successor.quorum.epoch > epoch
            await until(lambda successor=successor: successor.records == wanted, "the successor has what was committed")
            await leader.start()
        await until(lambda: all(server.records == wanted for server in servers), "every voter has all records")

    with_three(tmp_path, run)


def test_records_that_a_leader_could_not_commit_are_replaced(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        leader = await a_leader(servers)
        others = [server for server in servers if server is not leader]
        leader.write("kept")
        await until(lambda: all(server.records == ["kept"] for server in servers), "the first record")
        for server in others:
            server.kill()
        leader.write("lost")
        leader.kill()
        for server in others:
            await server.start()
        successor = await a_leader(others)
        successor.write("other")
        await leader.start()
        await until(lambda: all(server.records == ["kept", "other"] for server in servers), "the logs agree")

    with_three(tmp_path, run)


def test_leader_without_a_majority_resigns(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        leader = await a_leader(servers)
        for server in servers:
            if server is not leader:
                server.kill()
        await until(lambda: not leader.quorum.is_leader, "the leader resigns")
        with pytest.raises(Exception, match="does not lead"):
            leader.write("too late")

    with_three(tmp_path, run)


def test_stopped_leader_names_its_successor(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        leader = await a_leader(servers)
        leader.write("a")
        await until(lambda: all(server.records == ["a"] for server in servers), "all have it")
        await leader.stop()
        successor = await a_leader(servers)
        assert successor is not leader

    with_three(tmp_path, run)


def test_voter_with_an_emptied_directory_comes_back_from_a_snapshot(tmp_path: Path) -> None:
    async def run(servers: list[QuorumServer]) -> None:
        leader = await a_leader(servers)
        for number in range(20):
            leader.write(str(number))
        wanted = [str(number) for number in range(20)]
        await until(lambda: all(server.records == wanted for server in servers), "every voter has all records")
        log, offset = leader.quorum.log, leader.quorum.replica.high_watermark
        assert offset is not None
        snapshot_id = SnapshotId(offset, log.last_epoch)
        values = [encode_metadata_record(record, 0) for batch in log.batches(0) for record in batch.records]
        await log.snapshots.write(snapshot_id, 0, *leader.quorum.voters_before(offset), values, 0)
        await log.delete_before(snapshot_id)
        leader.write("after")
        wanted.append("after")
        emptied = next(server for server in servers if server is not leader)
        emptied.kill()
        shutil.rmtree(emptied.directory)
        await emptied.format()
        emptied.settings["controller.quorum.fetch.snapshot.max.bytes"] = "1024"
        await emptied.start()
        await until(lambda: emptied.records == wanted, "the emptied voter has all records again")
        assert emptied.snapshots == [snapshot_id]
        assert emptied.quorum.log.start_offset == offset

    with_three(tmp_path, run)
