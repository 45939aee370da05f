"""The administrator of a simulated run names what it deletes so that a request that comes twice deletes nothing else."""

from collections.abc import Callable
from copy import copy
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.client import Stage


@pytest.mark.parametrize(
    ("hosts", "wanted", "done_already"),
    [
        (("node",), TOPIC.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("n1", "n2"), TOPIC.topic_id, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_a_cluster_is_asked_to_delete_a_topic_by_its_id(hosts: tuple[str, ...], wanted: object, done_already: int) -> None:
    asked: list[object] = []

    async def settle(what: str, call: Callable[[Any], Any], done: ErrorCode, is_done: Callable[[], bool]) -> None:
        asked.append(call(SimpleNamespace(delete_topics=lambda topics: (topics, done))))

    def body(stage: Stage, checker: Recording) -> None:
        stage.hosts = hosts
        admin = Admin(stage, 1.0)
        admin.temporary.append(copy(TOPIC))
        admin._settle = settle  # type: ignore[assignment,method-assign]
        with pytest.raises(StopIteration):
            admin._delete_temporary().send(None)
        assert asked == [([wanted], done_already)]
        assert checker.names() == ["topic_deleted"]

    on_stage(body)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_refusal_by_old_metadata_is_asked_again(is_done: bool) -> None:
    answers: list[KafkaError | None] = [KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "a test"), None]

    async def call(admin: object) -> Any:
        raise AssertionError("not called by the stand-in")

    async def answer(call: object) -> KafkaError | None:
        return answers.pop(0)

    async def pause(seconds_max: float) -> None:
        return None

    def body(stage: Stage, checker: Recording) -> None:
        stage.hosts = ("n1", "n2")
        admin = Admin(stage, 1.0)
        admin._try, admin.pause = answer, pause  # type: ignore[method-assign]  # stand-ins
        with pytest.raises(StopIteration):
            admin._settle("delete_topics", call, ErrorCode.UNKNOWN_TOPIC_ID, lambda: is_done).send(None)
        assert len(answers) == (1 if is_done else 0)

    on_stage(body)
