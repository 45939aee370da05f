"""ListGroups: the groups of all shards, or an error while some are still loading."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.peers.group_requests import GroupRequests
from tests.support.peers.raw_client import RawClient

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
