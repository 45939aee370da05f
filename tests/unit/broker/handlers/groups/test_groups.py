"""ListGroups over all shards, groups that are named twice, committed offsets of deleted topics and of large requests."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.peers.group_requests import GroupRequests
from tests.support.peers.raw_client import RawClient

from ottla.broker.handlers.groups.group_calls import REPEATED_MEMBERS_MAX, as_often_as_named
from ottla.broker.handlers.groups.list_groups import handle, refuse
from ottla.broker.requests.context import PendingTask, RequestContext, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.testing import Broker
from ottla.wire.messages.list_groups import ListGroupsRequest


def test_without_the_internal_topic_there_are_no_groups() -> None:
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        answer = client.request(ListGroupsRequest(), 5)
        assert (answer.error_code, answer.groups) == (0, [])


def test_groups_of_all_shards() -> None:
    names = [f"group-{number}" for number in range(60)]
    with Broker() as broker:
        broker.create_topic("t")
        with GroupRequests(broker.bootstrap_servers) as groups:
            for name in names:
                groups.commit(name, {("t", 0): 1})
            assert groups.listed() == sorted(names)
            assert set(groups.delete(*names[10:])) == {0}
            assert groups.listed() == names[:10]


def test_listing_is_refused_while_a_shard_is_loading() -> None:
    groups = SimpleNamespace(is_loading=True)
    context = cast(RequestContext, SimpleNamespace(services=SimpleNamespace(coordinators=SimpleNamespace(groups=groups))))
    request = ListGroupsRequest()

    async def ask() -> Any:
        pending = handle(context, request)
        assert isinstance(pending, PendingTask)
        return await future_of(pending)

    with pytest.raises(KafkaError) as refused:
        asyncio.run(ask())
    assert refuse(context, request, refused.value).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_group_named_twice_is_listed_twice() -> None:
    a, b = SimpleNamespace(members=[1]), SimpleNamespace(members=[])
    assert as_often_as_named(["a", "b", "a"], {"a": a, "b": b}) == [a, b, a]


def test_large_response_lists_every_group_at_least_once() -> None:
    large, small = SimpleNamespace(members=list(range(999))), SimpleNamespace(members=[])
    answers = as_often_as_named(["large"] * 20_000 + ["small"], {"large": large, "small": small})
    assert answers.count(large) == 1 + REPEATED_MEMBERS_MAX // 1000
    assert answers[-1] is small


def test_deleting_a_topic_deletes_its_committed_offsets() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        with GroupRequests(broker.bootstrap_servers) as groups:
            groups.commit("g", {("t", 0): 1, ("u", 0): 2})
            broker.delete_topic("t")
            broker.create_topic("t")
            assert groups.fetch("g") == {"g": {("u", 0): 2}}
        broker.restart()
        with GroupRequests(broker.bootstrap_servers) as groups:
            assert groups.fetch("g") == {"g": {("u", 0): 2}}


def test_commit_larger_than_a_batch_is_refused() -> None:
    with Broker({"offsets.topic.num.partitions": 1, "message.max.bytes": 20_000}) as broker:
        broker.create_topic("t", 300)
        with GroupRequests(broker.bootstrap_servers) as groups:
            all_at_once = {("t", index): 1 for index in range(300)}
            assert set(groups.commit("g", all_at_once)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
            assert groups.fetch("g") == {"g": {}}
            assert any("max.message.bytes" in line for line in broker.log_lines), broker.log_lines
            for begin in range(0, 300, 100):
                assert set(groups.commit("g", {("t", index): 1 for index in range(begin, begin + 100)})) == {0}
            assert len(groups.fetch("g")["g"]) == 300
            assert groups.delete("g") == [0], "what is deleted needs no batch of its own"
            assert groups.fetch("g") == {"g": {}}
            assert groups.listed() == []
