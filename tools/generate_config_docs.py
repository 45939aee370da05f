"""Writes docs/configuration.md from the tables of settings: `make generate`.

The output is checked in, and a test fails when it is stale. `--check` writes nothing and fails if the file is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from documents import code, table, write_or_check

from ottla.config.broker_docs import documentation
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.client_metrics_keys import CLIENT_METRICS_DOCS, CLIENT_METRICS_KEYS
from ottla.config.dynamic import FIXED_HERE
from ottla.config.group_keys import GROUP_KEYS, GROUP_SYNONYMS
from ottla.config.keys import ConfigKey
from ottla.config.notices import REMOVED
from ottla.config.topic_keys import CONFLUENTS, TOPIC_KEYS, TOPIC_SYNONYMS, TOPIC_WITHOUT_EFFECT
from ottla.config.values import format_value

TARGET = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """\
# Settings

Written by `tools/generate_config_docs.py` from the tables in `src/ottla/config`: do not edit.

Names, types, defaults and rules are Kafka 4.3's, so a `server.properties` written for Kafka works unchanged. Settings that have
no effect in Ottla, and unknown names, are accepted; a warning at the start names them. An invalid value, or two settings that
contradict each other, stop the start with one sentence that says why.

In a `server.properties`, `--set` of `ottla up`, and files of client settings given to commands, a value may be a reference:
`${env:NAME}`, `${file:/path/secrets.properties:key}` or `${directory:/folder:name}`. So no password stands on a command line.

A broker's settings come in layers, each overriding the one before it: the default; the file; what was set at run time for all
brokers; what was set at run time for this broker. A topic's own settings override the broker's defaults for topics. **Changes**
says how a setting can change while the node runs: not at all (`read-only`), for one broker at a time (`per-broker`), or also
for all brokers at once (`cluster-wide`). A listener can have its own settings, such as
`listener.name.internal.max.connections`.
"""


def render() -> str:
    words = documentation()
    honoured = [key for key in BROKER_KEYS.values() if key.name in words]
    accepted = [key for key in BROKER_KEYS.values() if key.name not in words and not key.internal]
    topics = [key for key in TOPIC_KEYS.values() if not key.internal or key.name.startswith(CONFLUENTS)]
    return "\n".join(
        [
            HEAD,
            "## Broker settings",
            "",
            table(["Setting", "Type", "Default", "Changes", "What it does"],
                  ((*_facts(key), _mode(key), words[key.name]) for key in honoured)),
            "## Topic settings",
            "",
            table(["Setting", "Type", "Default", "Broker default", "What it does"],
                  ((*_facts(key), _stand_ins(key.name), _topic_words(key)) for key in topics)),
            "## Group settings",
            "",
            "Settings of share and streams groups are checked, stored and shown, but have no effect yet.",
            "",
            table(["Setting", "Type", "Default", "Broker default"],
                  ((*_facts(key), code(GROUP_SYNONYMS.get(key.name, ""))) for key in GROUP_KEYS.values())),
            "## Settings of client metrics subscriptions",
            "",
            "Checked, stored and shown, but without effect: clients are not asked for metrics yet.",
            "",
            table(["Setting", "Type", "Default", "What it says"],
                  ((*_facts(key), CLIENT_METRICS_DOCS[key.name]) for key in CLIENT_METRICS_KEYS.values())),
            "## Broker settings without effect",
            "",
            "Kafka has them, so they are accepted, checked and shown.",
            "",
            table(["Setting", "Type", "Default", "Changes"], ((*_facts(key), _mode(key)) for key in accepted)),
            "## Settings of older Kafkas",
            "",
            "A warning at the start names them and says what to do. All names that begin with `zookeeper.` are old.",
            "",
            table(["Setting", "Instead"], ((code(name), advice) for name, advice in REMOVED.items())),
        ]
    )  # fmt: skip


def _facts(key: ConfigKey) -> tuple[str, str, str]:
    default = format_value(key.default)
    return code(key.name), key.type.value.lower(), "" if default is None else code(default)


def _topic_words(key: ConfigKey) -> str:
    return f"{key.documentation} Without effect yet." if key.name in TOPIC_WITHOUT_EFFECT else key.documentation


def _mode(key: ConfigKey) -> str:
    return "read-only" if key.name in FIXED_HERE else key.update_mode.value


def _stand_ins(name: str) -> str:
    return ", ".join(code(broker) for broker, _ in TOPIC_SYNONYMS.get(name, ()))


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, render()))
