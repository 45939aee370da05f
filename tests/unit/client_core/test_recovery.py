"""When a rebootstrap is due: by time without metadata, or because the cluster asks for it."""

from types import SimpleNamespace

from ottla.client_core.recovery import Recovery
from ottla.errors import NetworkError, RebootstrapRequiredError


def recovery(strategy: str = "rebootstrap", trigger_ms: int = 1_000) -> Recovery:
    return Recovery(SimpleNamespace(metadata_recovery_strategy=strategy, metadata_recovery_rebootstrap_trigger_ms=trigger_ms))


def test_time_counts_from_the_first_request_after_the_last_success() -> None:
    counted = recovery()
    assert counted.due_ms() is None
    counted.asked(500)
    counted.asked(900)
    assert counted.due_ms() == 1_501
    assert counted.begin(1_500) is None
    counted.succeeded()
    assert counted.due_ms() is None
    counted.asked(2_000)
    assert counted.begin(3_001) is not None
    assert counted.due_ms() == 4_002, "it starts over with a rebootstrap"


def test_the_cluster_asks_for_one_at_once() -> None:
    counted = recovery()
    error = counted.required()
    assert isinstance(error, NetworkError)
    assert error.is_retriable
    assert counted.due_ms() == 0
    assert "REBOOTSTRAP_REQUIRED" in (counted.begin(10) or "")
    assert counted.begin(11) is None, "once"


def test_strategy_none_allows_neither() -> None:
    counted = recovery("none")
    counted.asked(0)
    error = counted.required()
    assert isinstance(error, RebootstrapRequiredError)
    assert not error.is_retriable
    assert "metadata.recovery.strategy=none" in str(error)
    assert counted.due_ms() is None
    assert counted.begin(10_000_000) is None
