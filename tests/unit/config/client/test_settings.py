"""The typed settings have every honoured setting as an attribute."""

import re
from pathlib import Path
from typing import get_type_hints

import pytest

import ottla
from ottla.config.client import AdminSettings, ClientSettings, ConsumerSettings, ProducerSettings
from ottla.config.client.build import Treatment, admin_settings, consumer_settings, producer_settings, treatment_of
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER, ClientKind
from ottla.config.client.words import SECURITY_WORDS

DERIVED = {"security", "notices", "auto_offset_reset_duration_ms", "sticky_batch_size"}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(PRODUCER, ProducerSettings), (CONSUMER, ConsumerSettings), (ADMIN, AdminSettings)],
    ids=["producer", "consumer", "admin"],
)
def test_attributes_are_the_honoured_settings(kind: ClientKind, settings: type[ClientSettings]) -> None:
    honoured = {name for name in kind.table if treatment_of(name)[0] is Treatment.HONOURED}
    expected = {name.replace(".", "_") for name in honoured if name not in SECURITY_WORDS}
    assert set(settings.attributes) - DERIVED == expected


def test_defaults_of_a_producer() -> None:
    settings = producer_settings("a:1")
    assert settings.acks == -1
    assert settings.linger_ms == 5
    assert settings.enable_idempotence is True
    assert settings.retries == 2**31 - 1
    assert settings.transactional_id is None
    assert settings.partitioner_class == "default"
    assert (settings.key_serializer, settings.value_serializer) == ("bytes", "bytes")
    assert settings.notices == ()


def test_keyless_records_stay_on_a_partition_for_kafkas_batch_size_unless_one_is_given() -> None:
    settings = producer_settings("a:1")
    assert (settings.batch_size, settings.sticky_batch_size) == (262_144, 16_384)
    settings = producer_settings("a:1", None, {"batch_size": 100_000})
    assert (settings.batch_size, settings.sticky_batch_size) == (100_000, 100_000)


def test_defaults_of_a_consumer() -> None:
    settings = consumer_settings("a:1", None, {"group_id": "g"})
    assert settings.partition_assignment_strategy == ("range", "cooperative-sticky")
    assert settings.auto_offset_reset == "latest"
    assert settings.auto_offset_reset_duration_ms is None
    assert settings.enable_auto_commit is True
    assert settings.group_protocol == "classic"


def test_defaults_of_an_admin_client() -> None:
    settings = admin_settings("a:1")
    assert settings.bootstrap_controllers == ()
    assert settings.default_api_timeout_ms == 60_000


def test_repr_names_the_cluster_and_no_secrets() -> None:
    settings = producer_settings(
        "a:1,b:2",
        None,
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "u",
            "sasl_plain_password": "s3cret",
        },
    )
    assert repr(settings) == "ProducerSettings(a:1,b:2, client_id='', SASL_SSL)"
    assert "s3cret" not in repr(settings.security)


@pytest.mark.parametrize("kind", [ProducerSettings, ConsumerSettings, AdminSettings])
def test_every_setting_is_read_somewhere(kind: type[ClientSettings]) -> None:
    """A setting that the table calls honoured and no code reads would be ignored in silence."""
    folder = Path(ottla.__file__).parent
    files = [path for path in folder.rglob("*.py") if path != folder / "config" / "client" / "settings.py"]
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in files)))
    assert set(get_type_hints(kind)) - words == set()
