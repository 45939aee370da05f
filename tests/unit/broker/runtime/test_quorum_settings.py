"""A replica's settings, and who may lead alone."""

import pytest
from tests.support.nodes.quorum_node import settings_of
from tests.support.raft.replicas import THREE, key

from ottla.broker.runtime.quorum_settings import NotAQuorumOfOne, check_alone, raft_settings
from ottla.config.broker import BrokerConfig
from ottla.raft.voters import Voter, VoterSet


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
