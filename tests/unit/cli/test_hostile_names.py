"""Names with terminal commands or line breaks: every verb escapes them, on a terminal, in a pipe and in JSON."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.nodes.fake_node import FakeNetwork
from tests.support.servers.ottla_cli import Said, run_cli
from tests.unit.cli.conftest import WHERE
from tests.unit.cli.named_cluster import CHANGING, OFFSET, READING, named_node, with_name

from ottla.cli.common.completion import complete_topics
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.log_records import encode_coordinator_key, encode_coordinator_value
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue

FORGED = "FORGED"
HOSTILE = f"x\x1b[2J\x9b31m\u202e\u2066\u200f\u2028\x7f\0\r\n{FORGED}\t\b"
BIDI_CONTROLS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map("x{}".format)
CONSUME = next(each for each in READING if each[0] == "consume")
VERBS = [each for each in READING if each != CONSUME]


@pytest.fixture(autouse=True)
def no_other_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)


def run(name: str, arguments: tuple[str, ...], *flags: str, columns: int | None = None) -> Said:
    with mock.patch("ottla.cli.common.connection.make_network", return_value=FakeNetwork({WHERE: named_node(name)})):
        return run_cli(*with_name(arguments, name), *flags, columns=columns)


def unsafe(text: str) -> Iterator[str]:
    """Characters that must not reach a terminal, except line ends and Kafka's tabs between columns."""
    for character in text:
        is_control = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in "\n\t"
        if is_control or character in BIDI_CONTROLS:
            yield character


def check(said: Said) -> None:
    assert list(unsafe(said.out + said.err)) == []
    assert not any(line.startswith(FORGED) for line in (said.out + said.err).split("\n")), said.out + said.err


@pytest.mark.parametrize("columns", [None, 80], ids=["pipe", "terminal"])
@pytest.mark.parametrize("arguments", [*VERBS, *CHANGING], ids=" ".join)
def test_no_verb_prints_controls_of_names(arguments: tuple[str, ...], columns: int | None) -> None:
    said = run(HOSTILE, arguments, columns=columns)
    check(said)
    assert "1b[2J" in said.out + said.err or "describe-producers" in arguments, "the name is shown escaped"


@settings(max_examples=10, deadline=None)
@given(NAMES)
@example(HOSTILE)
@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_names_of_all_characters_are_escaped_in_every_output(arguments: tuple[str, ...], name: str) -> None:
    piped = run(name, arguments)
    check(piped)
    check(run(name, arguments, columns=70))
    if piped.rc == 0:
        assert piped.out.count("\n") == run("x", arguments).out.count("\n"), "a name adds no line"


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_json_has_no_controls_and_decodes_to_the_true_name(arguments: tuple[str, ...]) -> None:
    said = run(HOSTILE, arguments, "--json")
    check(said)
    decoded = json.loads(said.out)

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, each in value.items():
                yield key
                yield from texts(each)
        elif isinstance(value, list):
            for each in value:
                yield from texts(each)
        elif isinstance(value, str):
            yield value

    if arguments[-1] != "0":  # describe-producers shows only numbers
        assert any(HOSTILE in text for text in texts(decoded)), said.out


def test_records_are_escaped_on_a_terminal_but_not_in_a_pipe() -> None:
    parts = [f"--formatter-property=print.{part}=true" for part in ("key", "headers")]
    raw = HOSTILE.encode()
    shown = run(HOSTILE, CONSUME, *parts, columns=80)
    check(shown)
    assert len(shown.lines) == 1
    assert run(HOSTILE, CONSUME, *parts).raw == raw + b":" + raw + b"\t" + raw + b"\t" + raw + b"\n"
    assert run(HOSTILE, CONSUME, *parts, "--raw", columns=80).raw == run(HOSTILE, CONSUME, *parts).raw
    assert list(unsafe(run(HOSTILE, CONSUME, "--formatter", "logging", columns=80).err)) == []


def test_reset_plans_are_escaped_on_a_terminal_but_not_in_a_pipe() -> None:
    plan = ("groups", "reset-offsets", "idle", "--topic", "NAME", "--to-latest", "--export")
    assert HOSTILE in run(HOSTILE, plan).out
    check(run(HOSTILE, plan, columns=80))


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    content = HOSTILE.encode()
    (folder / f"{OFFSET:020d}.log").write_bytes(build_batch([Record(OFFSET, 1, content, content, ((HOSTILE, content),))]))
    (folder / "partition.metadata").write_bytes(b"version: 0\ntopic_id: " + content)
    return folder


@pytest.mark.parametrize("flags", [(), ("--plain",), ("--json",), ("--wide",)], ids=["table", "plain", "json", "wide"])
def test_dumps_escape_records_on_a_terminal(partition: Path, flags: tuple[str, ...]) -> None:
    check(run_cli("dump-log", partition, "--print-data-log", *flags, columns=80))


def test_dumps_are_raw_in_a_pipe_or_on_request(partition: Path) -> None:
    (log,) = partition.glob("*.log")
    piped = run_cli("dump-log", log, "--print-data-log").raw
    assert b" payload: " + HOSTILE.encode() in piped
    assert run_cli("dump-log", log, "--print-data-log", "--raw", columns=80).raw == piped


def test_dumps_of_internal_topics_escape_names_in_a_pipe_too(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    key = encode_coordinator_key(OffsetCommitKey(group=HOSTILE, topic="t"))
    value = encode_coordinator_value(OffsetCommitValue(metadata=HOSTILE), 3)
    (folder / f"{0:020d}.log").write_bytes(build_batch([Record(0, 1, key, value)]))
    check(run_cli("dump-log", folder, "--print-data-log"))


def test_completion_offers_no_names_with_controls() -> None:
    import click

    with mock.patch("ottla.cli.common.connection.make_network", return_value=FakeNetwork({WHERE: named_node(HOSTILE)})):
        assert complete_topics(click.Context(click.Command("x")), click.Argument(["x"]), "") == []
