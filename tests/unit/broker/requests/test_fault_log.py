"""The rate limit of the fault log: enough lines to see what is wrong, too few to fill a disk."""

import logging

import pytest

from ottla.broker.requests.fault_log import LINES_IN_ALL, LINES_PER_HOST, WINDOW_S, FaultLog


def test_a_flood_is_cut_short_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    log = FaultLog(lambda: now_s, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, "hostile", "fault %d", number)
    assert len(caplog.records) == LINES_PER_HOST
    log.report(logging.ERROR, "other", "a real problem")
    assert caplog.records[-1].getMessage() == "a real problem"
    caplog.clear()
    now_s += WINDOW_S
    log.report(logging.INFO, "other", "next")
    assert "990 more" in caplog.records[0].getMessage()


def test_many_hosts_together_cannot_flood_it_either(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(lambda: 5.0, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, f"host-{number}", "fault")
    assert len(caplog.records) == LINES_IN_ALL


def bug(kind: type[Exception]) -> Exception:
    try:
        raise kind("why")
    except Exception as error:
        return error


def test_faults_of_peers_do_not_hide_bugs(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog(lambda: 5.0, logging.getLogger("test"))
    for number in range(1000):
        log.report(logging.WARNING, f"host-{number}", "fault")
    caplog.clear()
    for kind in (ValueError, KeyError):
        for _ in range(100):
            log.report_bug(logging.ERROR, bug(kind), "a bug: %s", kind.__name__)
    assert [record.getMessage() for record in caplog.records] == ["a bug: ValueError"] * 3 + ["a bug: KeyError"] * 3
    assert all(record.exc_info is not None for record in caplog.records)
