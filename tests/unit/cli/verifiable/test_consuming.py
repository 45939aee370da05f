"""The verifiable consumer's commits: those that fail, and those that a signal interrupts."""

import asyncio
from types import SimpleNamespace
from typing import Any

from ottla.cli.common.clients import ClientConfig
from ottla.cli.verifiable import ConsumePlan, VerifiableConsumer
from ottla.client.real_world import real_client_world
from ottla.errors import FencedInstanceIdError, RebalanceInProgressError, WakeupError
from ottla.ids import TopicPartition

OFFSETS = {TopicPartition("t", 0): 5}
COMMITTED = {"offsets": [{"topic": "t", "partition": 0, "offset": 5}]}


def committed(*outcomes: Exception | None) -> list[dict[str, Any]]:
    """The events of a commit whose attempts end like this; the error that it ends with is the last of them."""

    async def run() -> list[dict[str, Any]]:
        config = ClientConfig({"bootstrap.servers": "localhost:1", "group.id": "g"}, {})
        consumer = VerifiableConsumer(ConsumePlan("t"), config, real_client_world())
        printed: list[dict[str, Any]] = []
        left = list(outcomes)

        async def commit(offsets: object) -> None:
            outcome = left.pop(0)
            if outcome is not None:
                raise outcome

        events = SimpleNamespace(print=lambda name, **fields: printed.append({"name": name, **fields}))
        consumer._consumer, consumer._events = SimpleNamespace(commit=commit), events  # type: ignore[assignment]
        try:
            await consumer._commit(OFFSETS)
        except Exception as error:
            printed.append({"raised": type(error)})
        return printed

    return asyncio.run(run())


def test_commit_has_an_event() -> None:
    assert committed(None) == [{"name": "offsets_committed", **COMMITTED, "success": True}]


def test_failed_commit_has_an_event_with_its_error() -> None:
    failed = {"name": "offsets_committed", **COMMITTED, "error": "again", "success": False}
    assert committed(RebalanceInProgressError("again")) == [failed]


def test_commit_that_a_signal_interrupts_is_made_again() -> None:
    success = {"name": "offsets_committed", **COMMITTED, "success": True}
    assert committed(WakeupError(), None) == [success, {"raised": WakeupError}]


def test_fenced_member_ends() -> None:
    assert committed(FencedInstanceIdError()) == [{"raised": FencedInstanceIdError}]
