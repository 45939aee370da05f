"""What a user sees of an error: the line that caused it and the text, and no frames of the helpers."""

import re
import traceback
from pathlib import Path

import pytest
from tests.unit.testing.user_tests import run_pytest

from ottla.errors import BrokenInvariant, OttlaError
from ottla.testing import Broker, BrokerFailed, KafkaError
from ottla.testing.errors import without_internals

MISTAKES = {
    "broker.create_topic('orders', partitions=0)": "ArgumentError: topics: partitions of orders is 0, but must be from 1",
    "broker.delete_topic('nowhere')": "Error: topic nowhere was not deleted",
    "broker.records('nowhere')": "Error: topic nowhere does not exist",
    "broker.await_records('nowhere', timeout=0.01)": "TimedOut: 1 record of topic nowhere did not come",
    "broker.produce('orders', 5)": "TypeError: value=5: give bytes, text or None",
    "broker.produce('orders', 'a', headers={'a': b'b'})": "TypeError: headers=",
    "broker.faults.fail('Prod', 'INVALID_RECORD')": "ValueError: this broker serves no API 'Prod': did you mean Produce",
    "broker.faults.fail('Produce', 'INVALID_RECORD', partition=3)": "ValueError: partition 3 of which topic",
    "broker.faults.fail('Produce', 'INVALID_RECORD', times=0)": "ValueError: times=0",
    "broker.faults.delay('Fetch', 1).await_hits(timeout=0.01)": "TimedOut: delay of Fetch by 1 s was met 0 times",
    "Broker({'num.partition': 3})": "ValueError: num.partition is no broker setting of Kafka; did you mean num.partitions",
    "Broker({'num.partitions': 'many'}).start()": "BrokerFailed: the broker did not start: num.partitions",
    "Broker({'num.partitions': 'many'}, process=True).start()": "BrokerFailed: the broker did not start: num.partitions",
    "Broker().topics()": "NotRunning: the broker is not running",
    "Broker().bootstrap_servers": "NotRunning: the broker was not started",
    "await broker.aio.records('nowhere')": "Error: topic nowhere does not exist",
    "await broker.aio.await_records('nowhere', timeout=0.01)": "TimedOut: 1 record of topic nowhere did not come",
    "await broker.aio.produce('orders', 5)": "TypeError: value=5: give bytes, text or None",
}
FRAME = re.compile(r"^\S+:\d+: in (.*)$", re.MULTILINE)


def test_only_the_users_line_is_shown(tmp_path: Path) -> None:
    code = ["import pytest\nfrom ottla.testing import Broker\n"]
    for number, line in enumerate(MISTAKES):
        kind = "@pytest.mark.asyncio\nasync def" if line.startswith("await") else "def"
        code.append(f"{kind} test_number_{number}(kafka_session_broker):\n    broker = kafka_session_broker\n    {line}\n")
    done = run_pytest(tmp_path, "\n\n".join(code), "--tb=short", "-p", "pytest_asyncio.plugin")
    assert f"{len(MISTAKES)} failed" in done.stdout, done.stdout + done.stderr
    shown = re.split(r"^_+ test_number_\d+ _+$", done.stdout, flags=re.MULTILINE)[1:]
    for number, ((line, error), text) in enumerate(zip(MISTAKES.items(), shown, strict=True)):
        assert FRAME.findall(text) == [f"test_number_{number}"], text
        assert line in text
        assert error in text


def test_a_fixture_that_fails_shows_its_error(tmp_path: Path) -> None:
    marker = "@pytest.mark.kafka_broker(config={'num.partitions': 'many'})"
    code = f"import pytest\n\n\n{marker}\ndef test_it(kafka_broker):\n    pass\n"
    done = run_pytest(tmp_path, code, "--tb=short")
    assert "BrokerFailed: the broker did not start: num.partitions" in done.stdout
    assert len(FRAME.findall(done.stdout)) <= 2, done.stdout


def test_a_plain_traceback_is_short_too() -> None:
    with Broker() as broker:
        with pytest.raises(KafkaError) as caught:
            broker.create_topic("orders", partitions=0)
        frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames] == ["test_a_plain_traceback_is_short_too", "create_topic", "run"]


def test_causes_lose_their_tracebacks_and_bugs_keep_theirs() -> None:
    def raised(error: OttlaError, cause: BaseException | None) -> OttlaError:
        try:
            raise error from cause
        except OttlaError as caught:
            return caught

    refused, bug = raised(KafkaError(1, "refused"), None), raised(BrokenInvariant("a bug"), None)
    failure = without_internals(raised(BrokerFailed("over"), refused))
    assert (failure.__traceback__, refused.__traceback__, failure.__cause__) == (None, None, refused)
    assert without_internals(raised(BrokerFailed("over"), bug)).__cause__ is bug
    assert bug.__traceback__ is not None
    failure.__cause__ = failure
    assert without_internals(failure) is failure
