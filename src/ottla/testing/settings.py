"""Converts the settings that a test gives to the texts of a `server.properties`, and checks their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.broker.solo_settings import solo_settings
from ottla.testing.arguments import check_kind

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

HOST: Final = "127.0.0.1"
INTERNAL_PARTITIONS: Final = 4
"""Partitions of __consumer_offsets and __transaction_state. Kafka's default is 50 of each. Removing the folders of 50 took
0.2 s, more than all other work of a test broker together."""
_FOLDERS: Final = ("log.dirs", "log.dir", "metadata.log.dir")


def node_settings(config: Mapping[str, object], port: int, data: str) -> dict[str, str]:
    """The settings of a single-node cluster; those of `config` take precedence."""
    return {
        **solo_settings(HOST, port, data),
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
        **settings_of(config),
    }


def settings_of(config: Mapping[str, object]) -> dict[str, str]:
    """The settings that a test gives, as texts."""
    check_kind("config", config, Mapping, "a dict of broker settings")
    for name in config:
        check_kind("config", name, str, "names of settings")
    for name in _FOLDERS:
        if name in config:
            raise ValueError(f"{name} cannot be set for a broker for tests: name its folder with Broker(data=…)")
    if config:
        _check_names(config)
    return {name: setting_text(value) for name, value in config.items()}


def _check_names(config: Mapping[str, object]) -> None:
    """`ValueError` for unknown names: a warning in the log of a test broker would be overlooked."""
    from ottla.config.notices import hint, unknown_names
    from ottla.config.topic_keys import TOPIC_KEYS

    def mistake(name: str) -> str:
        where = ". Settings of one topic go to create_topic(config=…)" if name in TOPIC_KEYS else ""
        return f"{name} is no broker setting of Kafka{hint(name)}{where}"

    if unknown := unknown_names(config):
        raise ValueError("\n".join(mistake(name) for name in unknown))


def setting_text(value: object) -> str:
    """A value as text of a properties file: `True` gives true, a list its items joined by commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(setting_text(each) for each in value)
    return "" if value is None else str(value)
