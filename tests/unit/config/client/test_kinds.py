"""The kinds of client and the defaults in which Ottla differs from Kafka."""

import pytest

from ottla.config.client.build import producer_settings
from ottla.config.client.kinds import KINDS, PRODUCER, ClientKind, OwnDefault


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_own_defaults_are_of_settings_that_exist_and_say_why(kind: ClientKind) -> None:
    for name, own in kind.own_defaults.items():
        assert own.value != kind.table.default_of(name)
        assert own.reason.endswith(".")


def test_kafkas_default_holds_unless_there_is_an_own_one() -> None:
    assert PRODUCER.default_of("linger.ms") == 5
    assert PRODUCER.default_of("value.serializer") == "bytes"


def test_an_own_default_reaches_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {**PRODUCER.own_defaults, "batch.size": OwnDefault(65536, "For a test.")}
    monkeypatch.setattr(PRODUCER, "own_defaults", own)
    assert producer_settings("a:1").batch_size == 65536
    assert producer_settings("a:1", {"buffer.memory": 1000}).batch_size == 1000
    assert producer_settings("a:1", {"batch.size": 1}).batch_size == 1
