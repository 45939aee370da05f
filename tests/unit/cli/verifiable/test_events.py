"""Events as lines of JSON, Java's names of errors, and outputs without a reader."""

import asyncio
import json
import sys

import pytest

from ottla.cli.verifiable import Events, java_class
from ottla.errors import BufferExhaustedError, KafkaError, NotLeaderOrFollowerError, RequestTimedOutError
from ottla.errors.codes import ErrorCode


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (NotLeaderOrFollowerError(), "org.apache.kafka.common.errors.NotLeaderOrFollowerException"),
        (RequestTimedOutError(), "org.apache.kafka.common.errors.TimeoutException"),
        (BufferExhaustedError(), "org.apache.kafka.clients.producer.BufferExhaustedException"),
    ],
)
def test_errors_have_javas_names(error: KafkaError, name: str) -> None:
    assert java_class(error) == f"class {name}"


def test_event_is_one_line_of_json_with_its_fields_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        events = Events(asyncio.get_running_loop(), lambda: None)
        events.print("tool_data", sent=1, note="a\n\x9bß")
        events.flush()

    asyncio.run(run())
    out = capsys.readouterr().out
    assert list(json.loads(out)) == ["timestamp", "name", "sent", "note"]
    assert json.loads(out)["note"] == "a\n\x9bß"
    assert out.endswith('"name":"tool_data","sent":1,"note":"a\\n\\u009bß"}\n')
    assert out.count("\n") == 1


def test_output_without_a_reader_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def broken(*_: object) -> None:
        raise BrokenPipeError

    async def run() -> None:
        events = Events(asyncio.get_running_loop(), lambda: calls.append(1))
        monkeypatch.setattr(sys.stdout, "write", broken)
        events.print("one")
        events.print("two")
        assert events.is_closed

    asyncio.run(run())
    assert calls == [1]


def test_code_of_a_newer_broker_has_a_name() -> None:
    assert java_class(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "x")) == "class org.apache.kafka.common.KafkaException"
