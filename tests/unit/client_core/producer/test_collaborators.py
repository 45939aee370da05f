"""The real settings and transactions are what the sender's protocols ask for."""

from ottla.client_core.metadata import Metadata
from ottla.client_core.producer.collaborators import Gate, SenderSettings
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.transactions import TransactionManager
from ottla.config.client import producer_settings


def lacks(thing: object, protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_") and not hasattr(thing, name)]


def test_settings_of_a_producer_are_sender_settings() -> None:
    settings: SenderSettings = producer_settings("a:1", {"retries": 5})
    assert lacks(settings, SenderSettings) == []
    assert settings.retries == 5


def test_a_transaction_manager_is_a_gate() -> None:
    settings = producer_settings("a:1", {"transactional.id": "tx"})
    manager = TransactionManager("tx", settings, Idempotence(True), Metadata(settings, lambda below: 0), lambda below: 0)
    gate: Gate = manager
    assert lacks(gate, Gate) == []
    assert not gate.is_spoiled


def test_missing_names_are_found() -> None:
    assert lacks(object(), Gate) == ["is_fatal", "is_spoiled", "is_implicit", "may_send", "batch_failed"]
