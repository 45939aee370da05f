"""`ottla configs` compared with kafka-configs: the same lines, the same effects."""

import json
from collections.abc import Callable

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.peers.topics import await_true


@pytest.fixture
def made(ottla: RunOttla, topic: str) -> str:
    ottla("topics", "create", topic, "--config", "retention.ms=1000", "--config", "segment.ms=5000")
    return topic


def await_equal(ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Wait until both print the same: brokers apply changes a moment after they are acknowledged."""
    await_true(lambda: ours() == theirs(), "the two tools say the same")


def test_descriptions_are_kafkas_lines(ottla: RunOttla, kafka: RunTool, made: str) -> None:
    for flags in (
        ("--describe", "--entity-type", "topics", "--entity-name", made),
        ("--describe", "--topic", made, "--all"),
        ("--describe", "--entity-type", "brokers"),
        ("--describe", "--entity-type", "brokers", "--entity-default"),
        ("--describe", "--broker-defaults"),
        ("--describe", "--broker", "1", "--all"),
    ):
        ours, theirs = ottla("configs", *flags), kafka("configs", *flags)
        assert (ours.rc, ours.lines) == (theirs.rc, theirs.lines), flags
        assert len(ours.lines) >= 1


def test_changes_are_seen_by_both(ottla: RunOttla, kafka: RunTool, made: str) -> None:
    done = ottla(
        "configs",
        "alter",
        "topic",
        made,
        "--set",
        "retention.ms=2000",
        "--set",
        "cleanup.policy=compact,delete",
        "--unset",
        "segment.ms",
    )
    assert (done.rc, done.out) == (0, f"Completed updating config for topic {made}.\n")
    expected = ["cleanup.policy=compact,delete", "retention.ms=2000"]

    def described() -> list[str]:
        return [line.split()[0] for line in kafka("configs", "--describe", "--topic", made).lines[1:]]

    await_equal(described, lambda: expected)
    flags = (
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        made,
        "--add-config",
        "retention.ms=3,cleanup.policy=[delete,compact]",
    )
    assert ottla("configs", *flags, "--delete-config", "segment.ms").rc == 0

    def shown() -> dict[str, str]:
        (found,) = json.loads(ottla("configs", "describe", "topic", made, "--json").out)
        return {each["name"]: each["value"] for each in found["configs"]}

    await_equal(shown, lambda: {"retention.ms": "3", "cleanup.policy": "delete,compact"})
    assert kafka("configs", "--alter", "--topic", made, "--delete-config", "retention.ms").rc == 0
    await_true(lambda: "retention.ms" not in ottla("configs", "describe", "topic", made).out, "the setting is gone")


def test_settings_of_brokers(ottla: RunOttla, kafka: RunTool) -> None:
    assert ottla("configs", "alter", "broker", 1, "--set", "log.cleaner.threads=2").rc == 0
    assert ottla("configs", "alter", "broker-defaults", "--set", "log.retention.ms=77777777").rc == 0
    flags = ("--describe", "--entity-type", "brokers")
    await_true(lambda: "log.retention.ms=77777777" in ottla("configs", *flags).out, "the setting is shown")
    await_equal(lambda: ottla("configs", *flags).lines, lambda: kafka("configs", *flags).lines)
    assert "log.cleaner.threads=2" in ottla("configs", *flags).out
    assert ottla("configs", "alter", "broker", 1, "--unset", "log.cleaner.threads").rc == 0
    assert ottla("configs", "alter", "broker-defaults", "--unset", "log.retention.ms").rc == 0
    await_true(lambda: "log.retention.ms" not in kafka("configs", *flags).out, "the setting is gone")


def test_docs_flag_adds_the_documentation(ottla: RunOttla, made: str) -> None:
    (shown,) = json.loads(ottla("configs", "describe", "topic", made, "--all", "--docs", "--json").out)
    documented = {each["name"]: each.get("documentation") for each in shown["configs"]}
    assert documented["retention.ms"]
    assert len(documented) > 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "topic", "absent"), "topic absent does not exist"),
        (("alter", "topic", "absent", "--set", "retention.ms=1"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("alter", "topic", "MADE", "--set", "nope=1"), "INVALID_CONFIG"),
        (("alter", "topic", "MADE", "--set", "retention.ms=soon"), "retention.ms"),
        (("alter", "broker", "1", "--set", "log.dirs=x"), "INVALID_REQUEST"),
    ],
)
def test_refusals_are_one_sentence(ottla: RunOttla, made: str, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("configs", *(argument.replace("MADE", made) for argument in arguments))
    assert refused.rc == 1
    assert said in refused.err
    assert refused.err.startswith("ottla: ")
    assert "Traceback" not in refused.err
