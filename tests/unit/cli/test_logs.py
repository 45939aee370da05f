"""Log lines on the terminal and in a file per day."""

import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.common.times import parse_time_ms
from ottla.cli.logs import DailyFile, LineFormatter, configure_logging
from ottla.errors import OttlaError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    package = logging.getLogger("ottla")
    before = package.handlers, package.level, package.propagate
    yield
    for handler in package.handlers:
        if handler not in before[0]:
            handler.close()
    package.handlers, package.propagate = before[0], before[2]
    package.setLevel(before[1])


def test_line_has_time_level_and_logger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="WARNING", directory=tmp_path / "logs")
    logging.getLogger("ottla.node").info("up")
    logging.getLogger("ottla.requests").warning("Produce version %d failed", 9)
    (file,) = (tmp_path / "logs").iterdir()
    assert re.fullmatch(r"server\.log\.\d{4}-\d\d-\d\d", file.name)
    first, second = file.read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4} INFO     node: up", first)
    assert second.endswith(" WARNING  requests: Produce version 9 failed")
    assert capsys.readouterr().err.splitlines() == [second], "the terminal shows only its level"


def test_logger_set_to_a_lower_level_is_shown_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="INFO")
    requests = logging.getLogger("ottla.requests")
    requests.debug("not yet")
    requests.setLevel(logging.DEBUG)
    try:
        requests.debug("Produce version 13")
        logging.getLogger("ottla.node").debug("another logger")
    finally:
        requests.setLevel(logging.NOTSET)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("DEBUG    requests: Produce version 13")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "America/St_Johns"])
def test_time_of_a_line_can_be_pasted_into_an_option(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        record = logging.LogRecord("ottla.node", logging.INFO, "", 0, "up", (), None)
        record.created, record.msecs = 1_700_000_000.25, 250.0
        written = LineFormatter().format(record).split(" ")[0]
        assert parse_time_ms(written, "--from-time") == 1_700_000_000_250
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_new_day_begins_a_new_file(tmp_path: Path) -> None:
    handler = DailyFile(tmp_path)
    for created in (1_700_000_000.0, 1_700_200_000.0):
        record = logging.LogRecord("ottla.x", logging.INFO, "", 0, "at %s", (created,), None)
        record.created = created
        handler.emit(record)
    handler.close()
    written = {path.name: path.read_text() for path in tmp_path.iterdir() if path.read_text()}
    assert len(written) == 2
    assert all(text.count("\n") == 1 for text in written.values())


@pytest.mark.parametrize(("folder", "why"), [("file", "File exists"), ("file/logs", "Not a directory")])
def test_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OttlaError, match=rf"cannot write log files to .*/{folder}: {why}\. .* --log-dir"):
        configure_logging(level="INFO", directory=tmp_path / folder)


def test_control_characters_in_names_are_escaped() -> None:
    group_id = "a\n2026-11-15 10:20:30.123 ERROR    node: all is lost\x1b[2J\0\u2028 and é stays"
    record = logging.LogRecord("ottla.coordinator", logging.INFO, "", 0, "group %s is empty", (group_id,), None)
    line = LineFormatter().format(record)
    assert line.isprintable()
    assert line.endswith(r"group a\n2026-11-15 10:20:30.123 ERROR    node: all is lost\x1b[2J\x00\u2028 and é stays is empty")


def test_bidi_controls_and_surrogates_are_escaped_in_both_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="INFO", directory=tmp_path)
    logging.getLogger("ottla.node").info("member %s", "a\u202eb\u2066\x9b\udcff")
    (file,) = tmp_path.iterdir()
    assert file.read_text().endswith("member a\\u202eb\\u2066\\x9b\\udcff\n")
    assert capsys.readouterr().err == file.read_text()


def test_no_line_of_a_traceback_looks_like_an_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(level="INFO", directory=tmp_path)
    try:
        raise ValueError("x\n2026-11-15 10:20:30.123 ERROR    node: forged\r\x1b[2J")
    except ValueError:
        logging.getLogger("ottla.node").exception("it went wrong")
    (file,) = tmp_path.iterdir()
    first, *rest = file.read_text().split("\n")[:-1]
    assert first.endswith(" ERROR    node: it went wrong")
    assert all(line.startswith("    ") and line.isprintable() for line in rest)
    assert capsys.readouterr().err == file.read_text()


def test_long_message_loses_its_middle() -> None:
    record = logging.LogRecord("ottla.coordinator", logging.INFO, "", 0, "group %s is empty", ("x" * 32_000,), None)
    line = LineFormatter().format(record)
    assert len(line) < 4100
    assert "coordinator: group xxx" in line
    assert "xxx… (28015 characters) …xxx" in line
    assert line.endswith("xxx is empty")


def test_a_flood_of_lines_about_one_group_does_not_fill_the_disk(tmp_path: Path) -> None:
    configure_logging(level="ERROR", directory=tmp_path)
    for _ in range(2000):
        logging.getLogger("ottla.coordinator").info("group %s: member m left", "g")
    logging.getLogger("ottla.node").info("other loggers pass")
    (file,) = tmp_path.iterdir()
    lines = file.read_text().splitlines()
    assert 1000 < len(lines) < 1900
    assert lines[-1].endswith("other loggers pass")


def test_lines_for_the_journal_have_a_priority_and_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only if standard error is the journal, which its variable names."""
    with open(tmp_path / "journal", "w+") as journal:
        monkeypatch.setattr(sys, "stderr", journal)
        status = os.fstat(journal.fileno())
        for stream in (f"{status.st_dev}:{status.st_ino}", "1:1"):
            monkeypatch.setenv("JOURNAL_STREAM", stream)
            configure_logging(level="INFO", for_journal=True)
            try:
                raise ValueError("two\nlines")
            except ValueError:
                logging.getLogger("ottla.node").exception("failed")
            logging.getLogger("ottla.requests").warning("slow")
        journal.seek(0)
        lines = journal.read().splitlines()
    first = lines.index("<4>WARNING requests: slow")
    assert lines[0] == "<3>ERROR node: failed"
    assert all(line.startswith("<3>") for line in lines[:first])
    assert lines[first + 1].startswith("20")
    assert not any(line.startswith("<") for line in lines[first + 1 :])
