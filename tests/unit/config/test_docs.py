"""docs/configuration.md agrees with the tables, and every documented setting is used in the code."""

import re
import subprocess
import sys
from pathlib import Path

from ottla.config.broker_docs import documentation
from ottla.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT

ROOT = Path(__file__).parents[3]


def test_the_document_is_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "tools/generate_config_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def source_of_other_rooms() -> str:
    rooms = [path for path in (ROOT / "src" / "ottla").rglob("*.py") if not {"config", "wire"} & set(path.parts)]
    return "\n".join(path.read_text(encoding="utf-8") for path in rooms)


READ_BY_CONFIG = {
    "authorizer.class.name",
    # Identity and network: `broker_network` turns these into listeners, endpoints and quorum addresses.
    "broker.id",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "log.dir",
    "process.roles",
    "security.inter.broker.protocol",
    # `broker_security` turns these into the security of each listener.
    *(name for name in documentation() if name.startswith("ssl.")),
    "sasl.enabled.mechanisms",
    "sasl.mechanism.controller.protocol",
}


def test_every_documented_broker_setting_is_used() -> None:
    source = source_of_other_rooms()
    words = set(re.findall(r"\w+", source))
    named = set(re.findall(r'"([a-z.]+)"', source))  # settings of listeners are looked up by their names
    stand_ins = {name for synonyms in TOPIC_SYNONYMS.values() for name, _ in synonyms}
    unread = [
        name
        for name in documentation()
        if name not in stand_ins | READ_BY_CONFIG | named and name.replace(".", "_") not in words
    ]
    assert unread == [], "remove the documentation, or use the setting"


READ_AS = {
    "cleanup.policy": ".compact",
    "message.timestamp.type": "is_append_time",
    "unclean.leader.election.enable": '"unclean.leader.election.enable"',
}


def test_every_topic_setting_with_effect_is_used() -> None:
    source = source_of_other_rooms()
    unread = [
        key.name
        for key in TOPIC_KEYS.values()
        if not key.internal and key.name not in TOPIC_WITHOUT_EFFECT and READ_AS.get(key.name, key.attribute) not in source
    ]
    assert unread == []
