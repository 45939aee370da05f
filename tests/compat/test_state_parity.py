"""Our state machines and Apache Kafka's own classes, step by step over the same random scripts."""

from random import Random

import pytest
from tests.support.logs.epoch_script import random_epoch_script, run_epoch_script
from tests.support.logs.producer_script import random_script, run_script
from tests.support.servers.apache_kafka import ApacheKafka


@pytest.mark.slow
def test_producer_state_decides_as_apache_does(apache_kafka: ApacheKafka) -> None:
    random = Random(430)
    lines = [line for _ in range(200) for line in random_script(random)]
    theirs = apache_kafka.run_java("ProducerOracle.java", stdin="\n".join(lines) + "\n").stdout.splitlines()
    assert run_script(lines) == theirs
    answers = {line.split(" => ")[1].split(" ")[0] for line in theirs if " => " in line}
    assert answers >= {"ok", "ended", "duplicate", "OutOfOrderSequence", "InvalidProducerEpoch", "InvalidTxnState"}
    assert "TransactionCoordinatorFenced" in answers


@pytest.mark.slow
def test_leader_epochs_answer_as_apache_does(apache_kafka: ApacheKafka) -> None:
    random = Random(431)
    lines = [line for _ in range(100) for line in random_epoch_script(random)]
    theirs = apache_kafka.run_java("LeaderEpochOracle.java", stdin="\n".join(lines) + "\n").stdout.splitlines()
    assert run_epoch_script(lines) == theirs
