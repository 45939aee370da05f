"""Records of classic groups in __consumer_offsets: which requests write them, and their contents."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.fetching import fetch_of, part
from tests.support.peers.group_requests import GroupRequests, until
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla.coordinator.placement import partition_for
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC
from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value
from ottla.wire.messages.classic_group_records import GroupMetadataKey
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
NO_MEMBERS = ("", 0, None, None, [])


@pytest.fixture(scope="module")
def server(start_server: StartServer) -> Iterator[KafkaServer]:
    with start_server({}) as started, GroupRequests(started.bootstrap):
        yield started


@pytest.fixture
def client(server: KafkaServer) -> Iterator[RawClient]:
    with RawClient.to(server.bootstrap, client_id="me") as opened:
        yield opened


def written(client: RawClient, group_id: str) -> list[Any]:
    """Protocol type, generation, protocol, leader and members of each record; None for a tombstone."""
    topic = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)]), 9).topics[0]
    index = partition_for(group_id, len(topic.partitions))
    reply = client.request(fetch_of(OFFSETS_TOPIC, part(index)), 12)
    found: list[Any] = []
    for batch in iterate_batches(reply.responses[0].partitions[0].records):
        for record in read_records(batch):
            assert record.key is not None
            key = decode_coordinator_key(InternalLog.GROUPS, record.key)
            if not isinstance(key, GroupMetadataKey) or key.group != group_id:
                continue
            if record.value is None:
                found.append(None)
                continue
            value, version = decode_coordinator_value(InternalLog.GROUPS, key, record.value)
            assert version == 3
            assert abs(value.current_state_timestamp - record.timestamp) < 30_000
            members = [
                (each.member_id, each.group_instance_id, each.client_id, each.client_host, each.assignment)
                for each in value.members
            ]
            assert all((each.session_timeout, each.rebalance_timeout) == (10_000, 20_000) for each in value.members)
            assert all(each.subscription == SUBSCRIPTION for each in value.members)
            found.append((value.protocol_type, value.generation, value.protocol, value.leader, members))
    return found


def check_written(client: RawClient, group_id: str, expected: list[Any]) -> None:
    """Wait until the records are these: Apache answers some requests before their record is written."""
    found: list[Any] = []

    def is_written() -> bool:
        found[:] = written(client, group_id)
        return len(found) >= len(expected)

    until(is_written, f"what is written of {group_id}")
    assert found == expected


def join(group_id: str, member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )


def sync(client: RawClient, group_id: str, generation: int, member_id: str, assignments: dict[str, bytes]) -> None:
    request = SyncGroupRequest(group_id=group_id, generation_id=generation, member_id=member_id)
    request.assignments = [SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in assignments.items()]
    assert client.request(request, 3).error_code == 0


def leave(client: RawClient, group_id: str, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member_id)])
    assert client.request(request, 3).members[0].error_code == 0


def test_a_dynamic_member(client: RawClient) -> None:
    group_id = "dynamic"
    member_id = client.request(join(group_id), 9).member_id
    check_written(client, group_id, [NO_MEMBERS])
    assert client.request(join(group_id, member_id), 9).generation_id == 1
    check_written(client, group_id, [NO_MEMBERS])
    sync(client, group_id, 1, member_id, {member_id: b"a", "nobody": b"b"})
    whole = ("consumer", 1, "range", member_id, [(member_id, None, "me", "/127.0.0.1", b"a")])
    check_written(client, group_id, [NO_MEMBERS, whole])
    leave(client, group_id, member_id)
    empty = ("consumer", 2, None, None, [])
    check_written(client, group_id, [NO_MEMBERS, whole, empty])
    assert client.request(DeleteGroupsRequest(groups_names=[group_id]), 2).results[0].error_code == 0
    check_written(client, group_id, [NO_MEMBERS, whole, empty, None])


def test_a_static_member(client: RawClient) -> None:
    group_id = "static"
    first = client.request(join(group_id, instance_id="i"), 9).member_id
    check_written(client, group_id, [NO_MEMBERS])
    sync(client, group_id, 1, first, {first: b"a"})
    second = client.request(join(group_id, instance_id="i"), 9).member_id
    expected = [
        NO_MEMBERS,
        ("consumer", 1, "range", first, [(first, "i", "me", "/127.0.0.1", b"a")]),
        ("consumer", 1, "range", second, [(second, "i", "me", "/127.0.0.1", b"a")]),
    ]
    check_written(client, group_id, expected)


def test_static_restart_is_undone_when_its_record_is_too_large(client: RawClient, server: KafkaServer) -> None:
    """The subscription is larger than a batch of the topic may be: the earlier member stays."""
    group_id = "static-too-large"
    first = client.request(join(group_id, instance_id="i"), 9).member_id
    sync(client, group_id, 1, first, {first: b"a"})
    whole = ("consumer", 1, "range", first, [(first, "i", "me", "/127.0.0.1", b"a")])
    check_written(client, group_id, [NO_MEMBERS, whole])
    larger = join(group_id, instance_id="i")
    larger.protocols[0].metadata = bytes(2_000_000)
    assert client.request(larger, 9).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    check_written(client, group_id, [NO_MEMBERS, whole])
    with GroupRequests(server.bootstrap) as ready:  # while a coordinator loads, it accepts any heartbeat
        heartbeat = HeartbeatRequest(group_id=group_id, generation_id=1, member_id=first, group_instance_id="i")
        assert ready.ask(heartbeat, 4).error_code == 0, "the earlier member is still in the group"


def test_two_members(client: RawClient, server: KafkaServer) -> None:
    group_id = "two"
    leader = client.request(join(group_id), 3).member_id
    sync(client, group_id, 1, leader, {})
    with RawClient.to(server.bootstrap, client_id="other") as other:
        number = other.send(join(group_id), 3)
        rejoined = client.request(join(group_id, leader), 3)
        while len(rejoined.members) < 2:  # the other had not joined yet
            rejoined = client.request(join(group_id, leader), 3)
        follower = other.receive(JoinGroupRequest.KEY, 3, number).member_id
        generation = rejoined.generation_id
        sync(client, group_id, generation, leader, {follower: b"f"})
        *_, last = written(client, group_id)
    protocol_type, last_generation, protocol, last_leader, members = last
    assert (protocol_type, last_generation, protocol, last_leader) == ("consumer", generation, "range", leader)
    assert sorted(members) == sorted([(leader, None, "me", "/127.0.0.1", b""), (follower, None, "other", "/127.0.0.1", b"f")])


def test_an_old_member(client: RawClient) -> None:
    group_id = "old"
    member_id = client.request(join(group_id), 3).member_id
    check_written(client, group_id, [NO_MEMBERS])
    leave(client, group_id, member_id)
    check_written(client, group_id, [NO_MEMBERS, ("consumer", 2, None, None, [])])
