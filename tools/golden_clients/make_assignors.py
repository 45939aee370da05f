"""Rewrites tests/golden/clients/assignors with Apache Kafka 4.3.0: what its assignors give the members of generated groups.

    .venv/bin/python -m tools.golden_clients.make_assignors

NAME.jsonl.gz    per line one case of assignor_cases.py, and for each member the bytes of its assignment

Two kinds of case are left out: those on which Kafka's sticky assignors fail, and those in which they give a member a topic
that it does not subscribe to. Both come from one fault: with different subscriptions, they offer a partition to its owner of
an older generation without asking whether that member still subscribes to the topic. Ottla's assignors ask
(`sticky_general.py`), so in about one case of 2,000 the assignments also differ where Kafka's result is sound. No such case
is among those of this seed.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.support.servers.apache_kafka import ApacheKafka
from tools.golden_clients.assignor_cases import ASSIGNORS, cases

from ottla.wire.consumer_protocol import read_assignment, read_subscription

HERE = Path(__file__).parent
TARGET = HERE.parent.parent / "tests" / "golden" / "clients" / "assignors"


def is_sound(case: dict[str, Any], answer: dict[str, str] | None) -> bool:
    """Whether Kafka gave every member only topics that it subscribes to."""
    if answer is None:
        return False
    for member in case["members"]:
        subscribed = set(read_subscription(bytes.fromhex(member["metadata"])).topics)
        given = {each.topic for each in read_assignment(bytes.fromhex(answer[member["id"]])).assigned_partitions}
        if not given <= subscribed:
            return False
    return True


def main() -> None:
    kafka = ApacheKafka.obtain()
    made = list(cases())
    lines = "".join(json.dumps(case) + "\n" for case in made)
    answers = [json.loads(line) for line in kafka.run_java(HERE / "Assignors.java", stdin=lines).stdout.splitlines()]
    TARGET.mkdir(parents=True, exist_ok=True)
    for assignor in ASSIGNORS:
        mine = [(case, answer) for case, answer in zip(made, answers, strict=True) if case["assignor"] == assignor]
        kept = [{**case, "assigned": answer} for case, answer in mine if is_sound(case, answer)]
        text = "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in kept)
        (TARGET / f"{assignor}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{assignor}: {len(kept)} cases, {len(mine) - len(kept)} left out")


if __name__ == "__main__":
    main()
