"""Clients that are kept from task to task."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.spark import clients
from ottla.testing import Broker


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    yield
    clients.close_all()


def test_a_consumer_is_used_again_for_the_same_settings(shared_broker: Broker) -> None:
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers}
    with clients.consumer(settings) as first, clients.consumer(settings) as second:
        assert first is not second
    with clients.consumer(dict(reversed(settings.items()))) as again:
        assert again is first
    with clients.consumer({**settings, "fetch.min.bytes": "2"}) as other:
        assert other not in (first, second)


def test_a_consumer_of_a_failed_task_is_closed(shared_broker: Broker) -> None:
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers}
    with pytest.raises(KeyError), clients.consumer(settings) as failed:
        raise KeyError
    with clients.consumer(settings) as next_one:
        assert next_one is not failed


def test_few_unused_consumers_are_kept(shared_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "IDLE_MAX", 1)
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers}
    with clients.consumer(settings) as first:
        pass
    with clients.consumer({**settings, "client.id": "x"}):
        pass
    with clients.consumer(settings) as again:
        assert again is not first


def test_an_admin_client_leaves_out_settings_of_consumers(shared_broker: Broker) -> None:
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"}
    admin = clients.admin(settings)
    assert admin is clients.admin({"bootstrap.servers": shared_broker.bootstrap_servers})
    assert isinstance(admin.list_topics(), dict)
