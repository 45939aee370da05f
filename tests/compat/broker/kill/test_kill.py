"""kill -9 under load, again and again: every acknowledged record is there once, in order, and idempotent producers continue."""

import pytest
from tests.compat.broker.kill.kill_load import run
from tests.support.servers.ottla_server import StartServer, start_ottla


def test_nothing_acknowledged_is_lost(start_server: StartServer, server_kind: str) -> None:
    rounds, in_flight_max = (6, 5) if server_kind == "ottla" else (3, 1)
    report = run(start_server, rounds, seed=1, in_flight_max=in_flight_max)
    assert report.problems == []
    assert report.rounds == report.topics == rounds
    assert report.rolls_hit > 0
    assert report.records > 100 * report.rounds


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_nothing_acknowledged_is_lost_in_fifty_kills(seed: int) -> None:
    report = run(start_ottla, 50, seed, checkpoint_ms=500)
    assert report.problems == []
    assert report.rounds == report.topics == 50
    assert report.rolls_hit >= 10
