"""Voters added and removed while the quorum runs, on real sockets."""

import asyncio
from pathlib import Path
from typing import Any

from tests.support.nodes.quorum_server import QuorumServer, until
from tests.support.servers.kafka_server import free_ports

from ottla.broker.requests.context import future_of
from ottla.env.real.world import real_world
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


async def ask(server: QuorumServer, request: Message, version: int) -> Any:
    return await future_of(server.quorum.ask(request, version, "CONTROLLER"))


def addition(server: QuorumServer) -> AddRaftVoterRequest:
    local = server.quorum.replica.local
    listener = Listener(name="CONTROLLER", host="127.0.0.1", port=server.port)
    return AddRaftVoterRequest(cluster_id=None, voter_id=local.id, voter_directory_id=local.directory_id, listeners=[listener])


def test_observer_becomes_a_voter_and_leads_when_the_first_is_removed(tmp_path: Path) -> None:
    async def run() -> None:
        ports = free_ports(2)
        settings = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"}
        first = QuorumServer(world, str(tmp_path / "1"), 1, ports[0], settings)
        second = QuorumServer(world, str(tmp_path / "2"), 2, ports[1], settings)
        await first.format(standalone=True)
        await second.format(no_initial_controllers=True)
        await first.start()
        await second.start()
        first.write("a")
        await until(lambda: second.records == ["a"], "the observer follows")
        assert not second.quorum.replica.is_voter
        await until(lambda: any(each.last_caught_up_ms > 0 for each in first.quorum.facts().observers), "it has caught up")
        answer = await ask(first, addition(second), 1)
        assert (answer.error_code, answer.error_message) == (0, None)
        await until(lambda: second.quorum.replica.is_voter, "the observer is a voter")
        assert first.quorum.voters.ids == second.quorum.voters.ids == (1, 2)
        first.write("b")
        await until(lambda: first.records == second.records == ["a", "b"], "both commit")
        assert (await ask(first, addition(second), 1)).error_code == ErrorCode.DUPLICATE_VOTER
        local = first.quorum.replica.local
        removal = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=local.directory_id)
        assert (await ask(first, removal, 0)).error_code == 0
        await until(lambda: second.quorum.is_leader, "the voter that is left leads")
        second.write("c")
        await until(lambda: second.records == ["a", "b", "c"], "it commits alone")
        await until(lambda: first.records == ["a", "b", "c"], "the removed one follows as an observer")
        assert first.quorum.voters.ids == (2,)
        await first.stop()
        await second.stop()

    with real_world() as world:
        asyncio.run(run())


def test_observer_with_auto_join_becomes_a_voter_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        ports = free_ports(2)
        settings = {
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}",
            "controller.quorum.auto.join.enable": "true",
        }
        first = QuorumServer(world, str(tmp_path / "1"), 1, ports[0], settings)
        second = QuorumServer(world, str(tmp_path / "2"), 2, ports[1], settings)
        await first.format(standalone=True)
        await second.format(no_initial_controllers=True)
        await first.start()
        await second.start()
        await until(lambda: second.quorum.replica.is_voter, "the observer is a voter")
        await until(lambda: first.quorum.is_leader, "the leader still leads, or again")
        assert first.quorum.voters.ids == (1, 2)
        await second.stop()
        await first.stop()

    with real_world() as world:
        asyncio.run(run())
