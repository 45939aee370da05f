"""Waiting for a broker that is away, with a real one that starts late."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from unittest import mock

import click
import pytest
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.late_broker import LateBroker

from ottla.cli.common import waiting
from ottla.cli.common.settings import build_settings
from ottla.cli.common.waiting import parse_wait_s, shown_duration, with_cluster_awaited
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.errors import TopicAuthorizationError, UnreachableError

LONG_S = 120.0


@pytest.fixture
def late() -> Iterator[LateBroker]:
    with LateBroker("orders") as made:
        yield made


def test_goes_on_when_the_broker_is_there(late: LateBroker) -> None:
    with late.started_by_a_message() as said:
        topics = with_cluster_awaited(build_settings(late.address, {}), list_topics, LONG_S)
    assert list(topics) == ["orders"]
    assert re.match(rf"waiting for a broker at {late.address}, \d+ s of 2 min: .*nothing listens at {late.address}", said[0])
    assert said[-1].startswith(f"{late.address} answers after ")


def test_terminal_has_a_line_that_counts_and_goes_away(late: LateBroker) -> None:
    with late.started_by_a_line() as is_waiting:
        said = run_cli("sql", "SHOW TOPICS", "-b", late.address, "--wait", "2m", err_is_terminal=True)
    assert is_waiting.is_set()
    assert said.rc == 0
    first, *more = said.err.split("\r\x1b[K")[1:]
    assert re.match(rf"waiting for a broker at {late.address}, \d+ s of 2 min", first)
    assert more[-1] == ""
    assert "\n" not in said.err


def test_end_of_the_wait_raises_the_last_error(late: LateBroker) -> None:
    with pytest.raises(UnreachableError, match=f"nothing listens at {late.address}"):
        with_cluster_awaited(build_settings(late.address, {}), list_topics, 0.1)


@pytest.mark.parametrize("wait_s", [0, LONG_S])
def test_nothing_is_repeated_that_would_not_help(late: LateBroker, wait_s: float) -> None:
    attempts = 0

    async def work(cluster: Cluster) -> None:
        nonlocal attempts
        attempts += 1
        raise UnreachableError if not wait_s else TopicAuthorizationError("no right to read")

    with pytest.raises((UnreachableError, TopicAuthorizationError)):
        with_cluster_awaited(build_settings(late.address, {}), work, wait_s)
    assert attempts == 1


def test_ctrl_c_ends_with_a_sentence(late: LateBroker) -> None:
    def interrupt(text: str) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with mock.patch.object(waiting, "SILENT_S", 0.0), mock.patch.object(waiting, "warn", interrupt):
            said = run_cli("sql", "SHOW TOPICS", "-b", late.address, "--wait", "forever")
    finally:
        signal.signal(signal.SIGINT, before)
    assert said.rc == 130
    assert re.fullmatch(rf"ottla: interrupted after \d+ s of waiting for a broker at {late.address}", said.err.strip())


def test_durations_are_read_and_shown() -> None:
    assert [parse_wait_s(text) for text in ("0", "30s", "1h30m", "forever")] == [0, 30, 5400, float("inf")]
    with pytest.raises(click.UsageError, match="--wait does not understand '5': give 30s, 5m or 1h"):
        parse_wait_s("5")
    assert [shown_duration(each) for each in (0.4, 59, 60, 80, 3600)] == ["0 s", "59 s", "1 min", "1 min 20 s", "60 min"]
