"""Writes docs/client-settings.md from the tables of client settings: `make generate`.

The output is checked in, and a test fails when it is stale. `--check` writes nothing and fails if the file is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from documents import code, table, write_or_check

from ottla.config.client.build import Treatment, treatment_of
from ottla.config.client.classes import ASSIGNORS, PARTITIONERS, SERIALIZERS
from ottla.config.client.kinds import ADMIN, CONSUMER, KINDS, PRODUCER, ClientKind
from ottla.config.client.names import OTHER_LIBRARIES, RETIRED
from ottla.config.client.security import OWN_KEYWORDS
from ottla.config.client.words import words_of
from ottla.config.values import format_value

TARGET = Path(__file__).resolve().parent.parent / "docs" / "client-settings.md"

COLUMNS = ["Setting", "Type", "Default", "Valid values", "Treatment", "What it does, or why not"]

HEAD = f"""\
# Client settings

Written by `tools/generate_client_settings.py` from the tables in `src/ottla/config/client`: do not edit.

These are all producer, consumer and admin settings of Kafka 4.3, with Kafka's names, types and rules. Defaults are those that
Ottla's clients use; those that are not Kafka's are [listed](#defaults-that-are-not-kafkas). Give settings as a dict of Kafka's
names, as keywords with `_` for `.`, or both; a setting that is given twice must have the same value both times.

```
Producer("localhost:9092", linger_ms=20, compression_type="zstd")
Producer(config={{"bootstrap.servers": "localhost:9092", "linger.ms": "20", "compression.type": "zstd"}})
```

Values are Python's, or texts as in a properties file. Settings in milliseconds also take durations: `250ms`, `5s`, `1h30m`.

What a client does with a setting:

- **honoured**: it has the effect described here.
- **warned**: accepted, but without effect; a warning says why when the client is made.
- **refused**: an error says why, and what to do instead, when the client is made.

A setting that is given its default value asks for nothing, so it is neither refused nor warned of. An unknown name is an error
that suggests the right one, and so are combinations that cannot work. As in Kafka, some values follow from others: `acks` 0 or
1 and `retries` 0 turn idempotence off, and a client warns of it; without `group.id` nothing is committed automatically.

- Serializers and deserializers: {", ".join(f"`{name}`" for name in SERIALIZERS)}.
- Partitioners: {", ".join(f"`{name}`" for name in PARTITIONERS)}.
- Assignors: {", ".join(f"`{name}`" for name in ASSIGNORS)}.

Apache's class names of these are understood. Your own are Python objects, or paths of them: `package.module:Name`.
"""


def render() -> str:
    return "\n".join(
        [
            HEAD,
            *(line for kind in KINDS for line in _section(kind)),
            "## TLS and SASL, for all clients",
            "",
            table(COLUMNS,
                  (_row(PRODUCER, name) for name in sorted(_security_names()))),
            "Keywords that Kafka has no setting for:",
            "",
            table(["Keyword", "What it is"], ((code(name), words) for name, words in OWN_KEYWORDS.items())),
            "## Defaults that are not Kafka's",
            "",
            table(["Setting", "Kafka's default", "Ottla's default", "Why"],
                  ((code(name), _kafka_default(kind, name), code(format_value(own.value) or ""), own.reason)
                   for kind in KINDS for name, own in kind.own_defaults.items())),
            "## Names of older Kafka clients",
            "",
            "Errors that say what to do. All names that begin with `zookeeper.` are old.",
            "",
            table(["Setting", "Instead"], ((code(name), advice) for name, advice in RETIRED.items())),
            "## Names of other libraries",
            "",
            table(["Setting", "Instead"], ((code(name), advice) for name, advice in OTHER_LIBRARIES.items())),
        ]
    )  # fmt: skip


def _section(kind: ClientKind) -> list[str]:
    names = sorted(set(kind.table) - _security_names())
    heading = {PRODUCER: "Producer settings", CONSUMER: "Consumer settings", ADMIN: "Admin settings"}[kind]
    rows = (_row(kind, name) for name in names)
    return [f"## {heading}", "", table(COLUMNS, rows)]


def _security_names() -> set[str]:
    return {name for name in PRODUCER.table if name in ADMIN.table and name.startswith(("ssl.", "sasl.", "security."))}


def _row(kind: ClientKind, name: str) -> tuple[str, ...]:
    key = kind.table[name]
    treatment, reason = treatment_of(name)
    words = words_of(kind.name)[name] if treatment is Treatment.HONOURED else f"{reason[0].upper()}{reason[1:]}."
    default = _kafka_default(kind, name)
    if name in kind.own_defaults:
        words = f"{words} Kafka's default: {default or 'none'} ([why](#defaults-that-are-not-kafkas))."
        default = code(format_value(kind.own_defaults[name].value) or "")
    return code(name), key.type.value.lower(), default, _valid(kind, name), treatment.value, words


def _valid(kind: ClientKind, name: str) -> str:
    valid = (
        kind.table.valid_values_of(name).replace("(case insensitive) ", "").replace(",...,", " to ").replace(",...", " or more")
    )
    other_words = {"-": "", "offset reset or none": "earliest, latest, none, by_duration:PT1H"}
    return "" if valid.endswith("distinct list") else other_words.get(valid, valid.strip("[]"))


def _kafka_default(kind: ClientKind, name: str) -> str:
    default = format_value(kind.table.default_of(name))
    return code(default.replace("class ", "") if default else "")


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, render()))
