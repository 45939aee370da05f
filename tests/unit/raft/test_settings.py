"""Times that follow from others."""

from ottla.raft.settings import RaftSettings


def test_check_quorum_is_one_and_a_half_fetch_timeouts() -> None:
    settings = RaftSettings("c", fetch_timeout_ms=2000)
    assert settings.check_quorum_timeout_ms == 3000
    assert settings.begin_epoch_interval_ms == 1000
