"""Voters: from settings, on disk, and the facts of the quorum that a client asks for."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.nodes.quorum_node import settings_of
from tests.support.nodes.quorum_server import QuorumServer, until
from tests.support.raft.replicas import THREE, elected, key, replica_of_three
from tests.support.servers.kafka_server import free_ports

from ottla.broker.requests.context import future_of
from ottla.broker.runtime.quorum import NotAQuorumOfOne, check_alone, raft_settings
from ottla.broker.runtime.quorum_facts import ReplicaFacts, facts_of
from ottla.config.broker import BrokerConfig
from ottla.env.real.world import real_world
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.raft.voters import Voter, VoterSet
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


def test_bootstrap_servers_are_the_other_static_voters() -> None:
    config = BrokerConfig.from_settings(
        settings_of(
            {
                "controller.quorum.voters": "1@localhost:9093,2@b:2,3@c:3",
                "controller.quorum.bootstrap.servers": "",
                "controller.quorum.fetch.timeout.ms": "1234",
            }
        )
    )
    settings = raft_settings(config, "id")
    assert settings.bootstrap_servers == (("b", 2), ("c", 3))
    assert (settings.cluster_id, settings.fetch_timeout_ms, settings.can_be_voter) == ("id", 1234, True)


def test_own_listener_is_no_bootstrap_server() -> None:
    servers = "localhost:9093,127.0.0.1:9093,b:9093,localhost:9094"
    config = BrokerConfig.from_settings(settings_of({"controller.quorum.bootstrap.servers": servers}))
    assert raft_settings(config, None).bootstrap_servers == (("b", 9093), ("localhost", 9094))


def test_only_a_single_voter_leads_alone() -> None:
    check_alone(VoterSet([Voter(key(1), {})]), key(1), "/d")
    for voters in (VoterSet(), VoterSet([Voter(key(2), {})]), THREE):
        with pytest.raises(NotAQuorumOfOne):
            check_alone(voters, key(1), "/d")


def test_leader_reports_voters_and_observers() -> None:
    replica = elected()
    replica.follower_fetched(key(2), 1, 6000)
    replica.follower_fetched(key(8), 0, 6500)
    facts = facts_of(replica, 1_000_000, 7000)
    assert (facts.leader_id, facts.leader_epoch) == (1, 1)
    assert facts.voters == [
        ReplicaFacts(1, ZERO_UUID, 1, 1_000_000, 1_000_000),
        ReplicaFacts(2, ZERO_UUID, 1, 999_000, 999_000),
        ReplicaFacts(3, ZERO_UUID, -1, -1, -1),
    ]
    assert facts.observers == [ReplicaFacts(8, key(8).directory_id, 0, 999_500, -1)]
    assert facts.endpoints[2] == {"C": ("h2", 2)}


def test_others_know_the_leader_alone() -> None:
    facts = facts_of(replica_of_three(), 1_000_000, 0)
    assert (facts.leader_id, facts.high_watermark, list(facts.voters)) == (-1, -1, [])
