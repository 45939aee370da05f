"""What the faces share: signatures and docstrings of the functions, time limits, closing, metrics."""

import asyncio
import inspect
import logging
import pkgutil
from importlib import import_module
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

import ottla.client.admin
from ottla.client.admin import aio, sync
from ottla.errors import ConfigError, IllegalStateError, NetworkError, TimeoutError
from ottla.wire.messages.metadata import MetadataRequest

NO_SUBJECT = {"acl_types", "aio", "requests", "checks", "core", "results", "sync"}


def functions() -> dict[str, Any]:
    """Every function of the folder that takes a cluster and is not for the folder alone."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(ottla.client.admin.__path__):
        if module.name not in NO_SUBJECT:
            loaded = import_module(f"ottla.client.admin.{module.name}")
            found |= {
                name: each
                for name, each in vars(loaded).items()
                if inspect.iscoroutinefunction(each) and each.__module__ == loaded.__name__ and not name.startswith("_")
            }
    return found


def test_faces_have_every_function_with_its_signature_and_docstring() -> None:
    assert len(functions()) >= 50
    for name, function in functions().items():
        expected = list(inspect.signature(function).parameters.values())[1:]
        for face in (sync.Admin, aio.Admin):
            method = getattr(face, name)
            assert list(inspect.signature(method).parameters.values())[1:] == expected, name
            assert method.__doc__ == function.__doc__, name
            assert inspect.signature(method).return_annotation == inspect.signature(function).return_annotation
        assert inspect.iscoroutinefunction(getattr(aio.Admin, name))
        assert not inspect.iscoroutinefunction(getattr(sync.Admin, name))


def test_faces_have_the_same_names() -> None:
    assert [each for each in vars(sync.Admin) if not each.startswith("_")] == [
        each for each in vars(aio.Admin) if not each.startswith("_")
    ]


def test_call_ends_at_its_time_limit(scripted: Any, node: FakeNode) -> None:
    node.handlers[MetadataRequest] = lambda request, version: None
    with pytest.raises(TimeoutError, match=r"list_topics did not end within 0\.05 s"):
        scripted.with_timeout(0.05).list_topics()


@pytest.mark.parametrize("seconds", [0, -1, True, "5"])
def test_time_limit_must_be_a_positive_number(scripted: Any, seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds is "):
        scripted.with_timeout(seconds)


def test_closed_client_says_so(scripted: Any) -> None:
    scripted.close()
    scripted.close()
    with pytest.raises(IllegalStateError, match="closed"):
        scripted.list_topics()


def test_metrics_count_requests_and_connections(scripted: Any) -> None:
    assert scripted.metrics()["admin-client-metrics"]["request-total"] == 0
    assert scripted.list_topics() == {}
    found = scripted.metrics()
    assert found["admin-client-metrics"]["request-total"] == found["admin-client-metrics"]["response-total"] == 1
    assert found["admin-client-metrics"]["connection-count"] == 1
    assert found["admin-client-node-metrics{node-id=node--1}"]["request-total"] == 1
    assert 'kafka_admin_client_admin_client_metrics_request_total{client_id="ottla-admin"} 1' in scripted.prometheus_text()


def test_misspelt_setting_is_refused_when_the_client_is_made(open_admin: Any) -> None:
    with pytest.raises(ConfigError, match=r"request.timeout.ms"):
        open_admin("localhost:9092", request_timout_ms=5)
    with pytest.raises(ConfigError, match=r"bootstrap"):
        open_admin()


def test_setting_without_effect_is_logged(open_admin: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ottla.admin"):
        open_admin("localhost:9092", config={"metrics.recording.level": "DEBUG"})
    assert "metrics.recording.level" in caplog.text


def test_no_broker_is_an_error_within_the_time_limit(open_admin: Any) -> None:
    admin = open_admin("127.0.0.1:1", default_api_timeout_ms=300, request_timeout_ms=200)
    with pytest.raises((NetworkError, TimeoutError)):
        admin.list_topics()


def test_calls_run_side_by_side(node: FakeNode, server: Any) -> None:
    async def run() -> None:
        async with aio.Admin(server.bootstrap) as admin:
            clusters = await asyncio.gather(*(admin.describe_cluster() for _ in range(20)))
        assert len({each.cluster_id for each in clusters}) == 1

    asyncio.run(run())
