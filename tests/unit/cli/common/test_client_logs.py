"""A client's warnings appear on standard error while a command runs."""

import logging

import pytest

from ottla.cli.common.clients import LOGGER, client_logs_shown


def test_warnings_are_printed_and_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[int] = []
    logger = logging.getLogger(f"{LOGGER}.producer")
    with client_logs_shown(lambda: calls.append(1)):
        logger.warning("node %d is lost", 1)
        logger.info("nothing to worry about")
    assert capsys.readouterr().err == "ottla: node 1 is lost\n"
    assert calls == [1]


def test_warnings_can_be_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    with client_logs_shown(show=shown.append):
        logging.getLogger(f"{LOGGER}.producer").warning("node %d is lost", 1)
    assert (shown, capsys.readouterr().err) == (["node 1 is lost"], "")


def test_nothing_is_printed_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(logging.getLogger(LOGGER).handlers)
    with client_logs_shown():
        pass
    assert logging.getLogger(LOGGER).handlers == before
