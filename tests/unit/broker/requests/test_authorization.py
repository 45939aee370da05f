"""The hook for cluster actions."""

import pytest
from tests.support.nodes.images import context_of, image_of

from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.principal import ANONYMOUS, Principal
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey


def test_every_principal_may_act_on_the_cluster_for_now() -> None:
    context = context_of(image_of([], {}), ApiKey.BROKER_HEARTBEAT, 2, on_controller=True)
    assert context.connection.principal == ANONYMOUS
    check_cluster_action(context)


def test_refused_principal_is_named() -> None:
    context = context_of(image_of([], {}), ApiKey.BROKER_HEARTBEAT, 2, on_controller=True)
    context.connection.principal = Principal("User", "mallory")
    with pytest.raises(KafkaError, match="User:mallory may not act as a node") as refused:
        check_cluster_action(context, allows=lambda principal: principal.name != "mallory")
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
