"""A pipeline whose driver, Python processes and broker are killed at random and at every step loses and doubles nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from tests.spark.sink.killing import Pipeline
from tests.spark.sink.sink_work import STEPS
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.restarting_server import RestartingServer

from ottla.testing import Broker

ROUNDS = 30
KINDS = ("driver at step", "process at step", "driver at random", "broker at random")

Restart = Callable[[], None]


def run_rounds(
    pipeline: Pipeline, restart_broker: Restart, rounds: int, seed: int, steps_of_batch: Sequence[str] = STEPS
) -> None:
    """Feed, kill something, go on; then check everything."""
    random = Random(seed)
    steps = list(steps_of_batch)
    random.shuffle(steps)
    for number in range(rounds):
        kind = KINDS[number % len(KINDS)]
        step = steps[(number // len(KINDS) * 2 + number % len(KINDS)) % len(steps)]
        pipeline.kills.append(f"{kind}: {step}" if "step" in kind else kind)
        if "step" in kind:
            pipeline.arm(step)
            pipeline.feed()
            pid = pipeline.await_step()
            if kind.startswith("driver"):
                pipeline.kill_driver(pid)
            else:
                pipeline.kill_process(pid)
        else:
            pipeline.feed()
            time.sleep(random.uniform(0, 2))
            if kind.startswith("driver"):
                pipeline.kill_driver()
            else:
                restart_broker()
        pipeline.await_results()
    pipeline.check()


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_kills_against_ottla(tmp_path: Path) -> None:
    with Broker(process=True) as broker, Pipeline(broker.bootstrap_servers, tmp_path) as pipeline:

        def restart() -> None:
            broker.kill()
            broker.start()

        run_rounds(pipeline, restart, rounds=ROUNDS, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("two_phase", ["auto", "true"])
def test_kills_against_ottla_with_two_phase_commit(two_phase: str, tmp_path: Path) -> None:
    settings = {"transaction.two.phase.commit.enable": "true"}
    with Broker(settings, process=True) as broker, Pipeline(broker.bootstrap_servers, tmp_path, two_phase) as pipeline:

        def restart() -> None:
            broker.kill()
            broker.start()

        # With "true" tasks open transactions without a timeout: the driver has none to take away.
        steps = [step for step in STEPS if two_phase == "auto" or step != "commit:kept"]
        run_rounds(pipeline, restart, rounds=ROUNDS, seed=3, steps_of_batch=steps)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_kills_against_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with RestartingServer(apache_kafka.start_server) as server, Pipeline(server.bootstrap, tmp_path) as pipeline:

        def restart() -> None:
            server.kill()
            server.start()

        run_rounds(pipeline, restart, rounds=ROUNDS, seed=2)
