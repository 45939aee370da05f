"""Log lines of coordinators: all are written at normal rates, and a flood is limited."""

import logging
from collections.abc import Iterator

import pytest

from ottla.cli.log_limits import IN_ALL, LOGGER, PER_SUBJECT, REPORT_EVERY_S, CoordinatorLines


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Log:
    """The coordinators' logger with two handlers and a fake clock."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0
        self.logger, self.kept, self.other = logging.getLogger(LOGGER), Kept(), Kept()
        limits = CoordinatorLines()
        for handler in (self.kept, self.other):
            handler.addFilter(limits)

    def open(self) -> None:
        self.logger.addHandler(self.kept)
        self.logger.addHandler(self.other)

    def close(self) -> None:
        self.logger.removeHandler(self.kept)
        self.logger.removeHandler(self.other)

    def say(self, subject: str, text: str = "group %s: member m left", level: int = logging.INFO) -> None:
        record = self.logger.makeRecord(LOGGER, level, "", 0, text, (subject,), None)
        record.created = self.now_s
        self.logger.handle(record)

    def taken(self) -> list[str]:
        lines, self.kept.lines = self.kept.lines, []
        others, self.other.lines = self.other.lines, []
        assert lines == others, "both handlers get the same lines"
        return lines


@pytest.fixture
def log() -> Iterator[Log]:
    opened = Log()
    opened.open()
    yield opened
    opened.close()


def test_normal_rates_lose_no_line(log: Log) -> None:
    for _ in range(200):
        log.now_s += 1
        for _ in range(20):
            log.say("g")
    assert log.taken() == ["group g: member m left"] * 4000


def test_thousand_members_leave_at_once_and_all_are_logged(log: Log) -> None:
    for number in range(1000):
        log.say("g", f"group %s: member {number} is removed")
    assert len(log.taken()) == 1000


def test_flood_of_one_group_is_counted_and_others_are_logged(log: Log) -> None:
    for _ in range(PER_SUBJECT[0] + 500):
        log.say("loud")
    log.say("quiet")
    assert log.taken()[-2:] == ["group loud: member m left", "group quiet: member m left"]
    log.now_s += REPORT_EVERY_S
    log.say("quiet")
    report, line = log.taken()
    assert "500 log lines were dropped" in report
    assert "500 of them were about loud" in report
    assert line == "group quiet: member m left"
    log.now_s += REPORT_EVERY_S
    log.say("quiet")
    assert log.taken() == [line], "reported once"


def test_a_flood_of_made_up_groups_is_bounded(log: Log) -> None:
    for _ in range(100):
        log.now_s += 0.1
        for number in range(150):
            log.say(f"{log.now_s}-{number}")
    assert len(log.taken()) <= IN_ALL[0] + 10 * IN_ALL[1]
    log.now_s += REPORT_EVERY_S
    log.say("g")
    assert "were about many" in log.taken()[0]


def test_long_message_counts_as_several_lines(log: Log) -> None:
    for _ in range(100):
        log.say("n" * 32_000)
    assert len(log.taken()) < 20


def test_errors_are_always_logged(log: Log) -> None:
    for _ in range(PER_SUBJECT[0] * 2):
        log.say("g", "%s could not be written", logging.ERROR)
    assert len(log.taken()) == PER_SUBJECT[0] * 2


def test_clock_set_back_does_not_keep_dropping_lines(log: Log) -> None:
    for _ in range(PER_SUBJECT[0] + 1):
        log.say("g")
    log.taken()
    log.now_s -= 100_000
    log.say("h")
    report, line = log.taken()
    assert "1 log lines were dropped" in report
    assert line == "group h: member m left"
