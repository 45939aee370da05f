"""The tables of settings compared with Apache Kafka's: names, types, defaults, modes, and the values each accepts."""

from collections.abc import Iterator

import pytest
from tests.support.cases import client_settings
from tests.support.cases.config_files import REFUSED, STRICTER, TAKEN, file_of
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.client.kinds import KINDS
from ottla.config.client_metrics_keys import CLIENT_METRICS_KEYS
from ottla.config.group_keys import GROUP_KEYS
from ottla.config.keys import ConfigKey, ConfigTable
from ottla.config.topic_keys import TOPIC_KEYS
from ottla.config.values import ConfigType, InvalidConfig, format_value

TABLES: dict[str, ConfigTable] = {
    "broker": BROKER_KEYS,
    "broker dynamic": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client metrics": CLIENT_METRICS_KEYS,
    **{kind.name: kind.table for kind in KINDS},
}
ANY_TYPE = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1",
    "+5",
    "1.5",
    "true",
    "FALSE",
    "yes",
    "a,b",
    "a,a",
    "a,",
    ",",
    "a, b",
    "null",
    "9" * 30,
]
EDGES = ["2147483647", "2147483648", "32768", "9223372036854775807", "9223372036854775808", "-9223372036854775809"]
WORDS = [
    "uncompressed", "gzip", "GZIP", "none", "CreateTime", "createtime", "delete", "compact", "compact,delete", "delete,delete",
    "delete,x", "broker", "controller,broker", "broker,broker", "classic", "classic,share", "PLAINTEXT", "plaintext",
    "SASL_SSL", "UPGRADE", "Upgrade", "RS256", "rs256", "required", "Required", "1@a:1", "1@a:1,1@a:1", "a:9092", "*",
    "0:1,1:2", "0:1,", "latest", "Earliest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:-PT1H",
    "by_duration:1h", "by_duration:", "by_duration:P", "by_duration:PT0S", "read_committed", "READ_COMMITTED",
    "client_id=a,client_id=b", "client_id = x.*",
]  # fmt: skip
OTHER_SPELLINGS = {"NaN", "0.5d", "1E400"}
"""Java's other spellings of doubles, and infinity: refused here on purpose."""
CHECKED_WITH_OTHERS = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")
"""Lists of addresses, which `BrokerConfig` parses."""


def probes(key: ConfigKey) -> Iterator[str]:
    """Values that distinguish the rules of settings: words for all, and the numbers around its bounds."""
    yield from ANY_TYPE
    yield from EDGES
    yield from WORDS
    bounds = [1, 2, 4, 5, 9, 10, 15, 17, 22, 25, 100, 128, 500, 1000, 1024, 2000, 3600, 4096, 10000, 15000, 30000, 60000, 86400]
    bounds += [524288, 1048576, 8388608, 3600000, 131072]
    for bound in bounds:
        yield from (str(bound - 1), str(bound), str(bound + 1), str(-bound), str(-bound - 1))
    if key.type is ConfigType.DOUBLE:
        yield from ("0.0", "-0.001", "1.0", "1.001", "0.5", "0.501", "0.25", "1e-1", ".5", "1E400")


@pytest.fixture(scope="module")
def apaches_rows(apache_kafka: ApacheKafka) -> list[list[str]]:
    output = apache_kafka.run_java("ConfigOracle.java", "tables").stdout
    return [line.split("\t") for line in output.splitlines()]


def test_every_setting_is_apaches(apaches_rows: list[list[str]]) -> None:
    different = []
    for table, name, type_, default, _valid, importance, mode, internal in apaches_rows:
        key = TABLES[table][name]
        ours = [key.type.value, format_value(key.default), key.importance.value, key.internal]
        if table.startswith("broker"):
            ours.append(key.update_mode.value)
        theirs: list[object] = [type_, None if default in ("null", "REQUIRED") else default, importance]
        theirs.append(internal == "true" or table == "broker dynamic")
        if table.startswith("broker"):
            theirs.append(mode)
        if ours != theirs:
            different.append((name, ours, theirs))
    assert different == []


def test_there_are_no_settings_that_apache_does_not_have(apaches_rows: list[list[str]]) -> None:
    for table in TABLES.values():
        theirs = {row[1] for row in apaches_rows if TABLES[row[0]] is table}
        # Ottla's own settings, and those of Confluent Server that it has too.
        ours = {name for name in table if name.startswith(("ottla.", "confluent."))}
        assert sorted(set(table) - theirs - ours) == []


@pytest.mark.slow
def test_every_setting_accepts_the_values_that_apache_accepts(apache_kafka: ApacheKafka, apaches_rows: list[list[str]]) -> None:
    asked: list[tuple[str, str, str]] = []
    for table, name, *_ in apaches_rows:
        key = TABLES[table][name]
        if key.type is not ConfigType.CLASS and name not in CHECKED_WITH_OTHERS:  # Java looks for the class, and finds none
            asked += [(table, name, text) for text in dict.fromkeys(probes(key)) if text not in OTHER_SPELLINGS]
    answers = apache_kafka.run_java("ConfigOracle.java", "values", stdin="".join("\t".join(row) + "\n" for row in asked)).stdout
    verdicts = [line.split("\t") for line in answers.splitlines()]
    assert len(verdicts) == len(asked) > 10_000
    different = []
    for (table, name, text), (verdict, theirs) in zip(asked, verdicts, strict=True):
        try:
            ours = format_value(TABLES[table][name].parse(text))
        except InvalidConfig:
            ours = None
        if (ours is not None) != (verdict == "ok") or (ours is not None and theirs not in (ours, "[hidden]")):
            different.append((name, text, ours, verdict, theirs))
    assert different == []


@pytest.mark.slow
def test_files_are_accepted_or_refused_as_by_apache(apache_kafka: ApacheKafka) -> None:
    files = [(True, file_of(base, changes)) for base, changes in TAKEN]
    files += [(False, file_of(base, changes)) for base, changes, _ in REFUSED]
    files += [(True, file_of(base, changes)) for base, changes, _ in STRICTER]
    lines = ["\t".join(f"{name}={text}" for name, text in file.items()) for _, file in files]
    verdicts = apache_kafka.run_java("ConfigOracle.java", "files", stdin="".join(f"{line}\n" for line in lines)).stdout
    for (is_taken, _), line, verdict in zip(files, lines, verdicts.splitlines(), strict=True):
        assert verdict.startswith("ok" if is_taken else "no"), (line, verdict)


@pytest.mark.slow
def test_clients_are_made_or_refused_as_by_apache(apache_kafka: ApacheKafka) -> None:
    cases = [(True, kind, config) for kind, config in client_settings.TAKEN]
    cases += [(False, kind, config) for kind, config, _ in client_settings.REFUSED]
    cases += [(True, kind, config) for kind, config, _ in client_settings.STRICTER]
    lines = ["\t".join([kind, *(f"{name}={text}" for name, text in config.items())]) for _, kind, config in cases]
    verdicts = apache_kafka.run_java("ConfigOracle.java", "clients", stdin="".join(f"{line}\n" for line in lines)).stdout
    answers = [line for line in verdicts.splitlines() if line.startswith(("ok\t", "no\t"))]
    assert len(answers) == len(cases)
    assert [
        (line, answer)
        for (is_taken, _, _), line, answer in zip(cases, lines, answers, strict=True)
        if answer.startswith("ok") != is_taken
    ] == []
