"""Partition changes compared with Apache's PartitionChangeBuilder: leaders, ISR, ELR, epochs, reassignments."""

import random
from typing import Any

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.ids import Uuid
from ottla.metadata.controller.partition_change import Election, PartitionChange
from ottla.metadata.features import DIRECTORIES_FROM, ELR_FROM, record_version
from ottla.metadata.image.topics import PartitionState
from ottla.wire.log_records import encode_metadata_record

CASES = 20_000
TOPIC_ID = Uuid((7).to_bytes(8, "big") * 2)
VERSIONS = (7, 11, 12, 16, 17, 22, 23, 26, 30)


def directory(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def random_case(rng: random.Random) -> dict[str, Any]:
    """A possible partition, and targets that the controller sets. Some combinations never occur."""
    version = rng.choice(VERSIONS)
    elr_enabled = version >= ELR_FROM and rng.random() < 0.8
    replicas = rng.sample(range(1, 7), rng.randint(1, 4))
    isr = some(rng, replicas)
    elr = some(rng, [replica for replica in replicas if replica not in isr]) if elr_enabled and rng.random() < 0.6 else []
    is_reassigning = rng.random() < 0.3
    case: dict[str, Any] = {
        "version": version,
        "elr_enabled": elr_enabled,
        "replicas": replicas,
        "directories": [rng.randrange(3, 9) if version >= DIRECTORIES_FROM else 0 for _ in replicas],
        "isr": isr,
        "elr": sorted(elr),
        "last_known_elr": some(rng, replicas)[:2] if elr_enabled and rng.random() < 0.5 else [],
        "leader": rng.choice([-1, *isr]),
        "recovery": rng.choice([0, 0, 0, 1]),
        "removing": some(rng, replicas) if is_reassigning else [],
        "adding": some(rng, replicas) if is_reassigning else [],
        "acceptable": some(rng, list(range(1, 7))),
        "min_isr": rng.randint(1, 3),
        "election": rng.choice(list(Election)).name,
        "unclean": rng.sample(replicas, 1) if rng.random() < 0.3 else [],
        "moved": rng.sample(replicas, 1) if rng.random() < 0.1 else [],
    }
    case |= {"target_isr": isr, "target_replicas": replicas, "target_recovery": case["recovery"]}
    case |= {"target_removing": case["removing"], "target_adding": case["adding"]}
    change = rng.random()
    if change < 0.5:
        case["target_isr"] = some(rng, isr) if rng.random() < 0.7 else some(rng, replicas)
    elif change < 0.7:
        case["target_replicas"] = rng.sample(range(1, 7), rng.randint(1, 4))
    elif change < 0.8:
        case["target_recovery"] = rng.randrange(2)
    return case


def some(rng: random.Random, items: list[int]) -> list[int]:
    return rng.sample(items, rng.randint(0, len(items)))


def ours(case: dict[str, Any]) -> str:
    partition = PartitionState(
        replicas=tuple(case["replicas"]),
        directories=tuple(directory(number) for number in case["directories"]),
        isr=tuple(case["isr"]),
        leader=case["leader"],
        leader_epoch=5,
        partition_epoch=9,
        removing_replicas=tuple(case["removing"]),
        adding_replicas=tuple(case["adding"]),
        leader_recovery_state=case["recovery"],
        elr=tuple(case["elr"]),
        last_known_elr=tuple(case["last_known_elr"]),
    )
    change = PartitionChange(
        partition=partition,
        is_acceptable_leader=lambda broker_id: broker_id in case["acceptable"],
        default_directory=lambda broker_id: directory(100 + broker_id),
        metadata_version=case["version"],
        min_isr=case["min_isr"],
        elr_enabled=case["elr_enabled"],
        election=Election[case["election"]],
        unclean_shutdown_replicas=case["unclean"],
    )
    change.isr, change.replicas = list(case["target_isr"]), list(case["target_replicas"])
    change.removing, change.adding = list(case["target_removing"]), list(case["target_adding"])
    change.recovery_state = case["target_recovery"]
    for broker_id in case["moved"]:
        change.directories[broker_id] = directory(200 + broker_id)
    record = change.build(TOPIC_ID, 3)
    return "none" if record is None else encode_metadata_record(record, record_version(record, case["version"])).hex()


def question(case: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        return (
            ",".join(map(str, value))
            if isinstance(value, list)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )

    return "change " + " ".join(f"{name}={text(value)}" for name, value in case.items())


@pytest.mark.slow
def test_changed_alike(apache_kafka: ApacheKafka) -> None:
    rng = random.Random(4)
    cases = [random_case(rng) for _ in range(CASES)]
    questions = "\n".join(question(case) for case in cases) + "\n"
    answers = apache_kafka.run_java("MetadataOracle.java", stdin=questions).stdout.splitlines()
    assert len(answers) == CASES
    wrong = [
        (case, found, answer)
        for case, answer in zip(cases, answers, strict=True)
        if (found := ours(case)) != answer and not removes_eligible(case)
    ]
    assert not wrong, f"{len(wrong)} of {CASES}, such as {wrong[:3]}"
    assert sum(map(removes_eligible, cases)) < CASES / 2


def removes_eligible(case: dict[str, Any]) -> bool:
    """Whether the change removes a replica that could be in the ELR. Apache Kafka keeps it there, Ottla does not."""
    after = {*case["target_replicas"]} - {*case["target_removing"]}
    may_be_eligible = {*case["elr"], *case["isr"]} - ({*case["target_isr"]} & after)
    return bool(case["elr_enabled"] and not may_be_eligible <= after)
