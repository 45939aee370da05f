"""What `ottla up --secure` makes in its data folder."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from ottla.broker.secure_settings import client_properties, secured
from ottla.broker.solo_settings import solo_settings
from ottla.cli.node.secure import client_file, first_user, node_security
from ottla.config.broker import BrokerConfig
from ottla.config.jaas import parse_jaas
from ottla.config.java_properties import parse_properties
from ottla.env.real.certificates import is_good_for


def test_first_start_makes_everything_and_the_next_uses_it(tmp_path: Path) -> None:
    first = node_security(tmp_path, "127.0.0.1")
    made = {path.name: path.read_bytes() for path in (tmp_path / "security").iterdir()}
    assert made.keys() == {"ca.pem", "ca-key.pem", "node.pem", "client.properties"}
    for secret in made.keys() - {"ca.pem"}:
        assert (tmp_path / "security" / secret).stat().st_mode & 0o777 == 0o600, secret
    assert node_security(tmp_path, "127.0.0.1") == first
    assert {path.name: path.read_bytes() for path in (tmp_path / "security").iterdir()} == made


def test_another_host_gets_a_certificate_that_names_it(tmp_path: Path) -> None:
    node_security(tmp_path, "127.0.0.1")
    node_file = tmp_path / "security" / "node.pem"
    assert not is_good_for(node_file, "kafka.lan")
    node_security(tmp_path, "kafka.lan")
    assert is_good_for(node_file, "kafka.lan")
    assert is_good_for(node_file, "localhost")


@pytest.mark.parametrize("place", ["meta.properties", "node-1/meta.properties"])
def test_folder_of_an_open_node_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("version=1\n")
    with pytest.raises(click.ClickException, match=r"not secured: name a new folder"):
        node_security(tmp_path, "127.0.0.1")
    assert not (tmp_path / "security").exists()


def test_client_properties_log_in_as_the_first_user(tmp_path: Path) -> None:
    security = node_security(tmp_path, "127.0.0.1")
    properties = parse_properties(client_file(tmp_path).read_bytes())
    assert properties == client_properties(security)
    options = parse_jaas(properties["sasl.jaas.config"]).options
    assert first_user(security) == f"SCRAM-SHA-512=[name={options['username']},password={options['password']}]"


def test_lost_password_is_one_sentence(tmp_path: Path) -> None:
    node_security(tmp_path, "127.0.0.1")
    client_file(tmp_path).write_text("security.protocol=SASL_SSL\n")
    with pytest.raises(click.ClickException, match="does not say the password of admin"):
        node_security(tmp_path, "127.0.0.1")


def test_settings_secure_every_listener(tmp_path: Path) -> None:
    settings = secured(solo_settings("127.0.0.1", 9092, str(tmp_path / "node-1")), node_security(tmp_path, "127.0.0.1"))
    config = BrokerConfig.from_settings(settings)
    assert {each.name: each.security_protocol for each in config.listeners} == {"SASL_SSL": "SASL_SSL", "CONTROLLER": "SSL"}
    assert config.inter_broker_listener_name == "SASL_SSL"
