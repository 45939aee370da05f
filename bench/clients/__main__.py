"""`make bench-clients`: Ottla's Python clients, confluent-kafka, aiokafka and kafka-python against one broker, in turn.

python -m bench.clients                         everything, about 5 minutes; keeps the figures: results.json and documents
python -m bench.clients --quick                 little data and one round, about 2 minutes; prints only
python -m bench.clients --kinds produce --only 'Ottla send;confluent-kafka' --cases '100 B' --rounds 5
--save / --no-save                              keep the figures of a partial run, or do not keep those of a full one
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from typing import Any

from bench.clients import report
from bench.clients.broker import BenchBroker
from bench.clients.cases import CASES, CONSUME, LATENCY, OTHERS, PARTITIONS, PRODUCE, Case, Use, filled_records
from bench.clients.results import ClientResults, missing, percentile
from bench.side_by_side.machine import machine_facts

ROUNDS = 3
QUICK_SCALE = 0.1
LATENCY_RATE = 500
LATENCY_RECORDS, LATENCY_WARM_UP = 2_000, 300
WAITED_RECORDS = 3_000


def start_child(kind: str, arguments: dict[str, Any], pure: bool = False) -> subprocess.Popen[str]:
    environment = {**os.environ, "OTTLA_PURE": "1" if pure else "0"}
    command = [sys.executable, "-m", "bench.clients.child", kind, json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish_child(child: subprocess.Popen[str], what: str) -> Any:
    output, errors = child.communicate()
    try:
        return json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{what} failed:\n{errors[-3000:]}") from None


def measure(kind: str, use: Use, arguments: dict[str, Any], broker: BenchBroker) -> dict[str, float]:
    """The figures of one use of a client, with the broker's processor time per record."""
    before_s = broker.cpu_s()
    child = start_child(kind, {"use": use.name, "bootstrap": broker.bootstrap, **arguments}, use.pure)
    found: dict[str, float] = finish_child(child, f"{kind} with {use.name}")
    return {**found, "broker_us": (broker.cpu_s() - before_s) / arguments["count"] * 1e6}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure_produce(broker: BenchBroker, case: Case, uses: list[Use], scale: float, results: ClientResults) -> None:
    for use in uses:
        topic = broker.create_topic(PARTITIONS)
        arguments = {"topic": topic, "size": case.size, "keyed": case.keyed, "count": use.count(case, scale)}
        found = measure("produce", use, arguments, broker)
        broker.delete_topic(topic)
        results.add("produce", case.label, use.name, found)
        say(f"produce {case.label}: {use.name} {found['rate']:,.0f}/s, {found['cpu_us']:.2f} µs, {found['peak_mb']:.0f} MB")


def measure_consume(
    broker: BenchBroker, case: Case, uses: list[Use], options: argparse.Namespace, results: ClientResults
) -> None:
    topic = broker.create_topic(PARTITIONS)
    count = filled_records(case, options.scale)
    fill = {"use": "Ottla send_many", "topic": topic, "size": case.size, "keyed": case.keyed, "count": count}
    finish_child(start_child("produce", {"bootstrap": broker.bootstrap, **fill}), "filling a topic")
    for _ in range(options.rounds):
        for use in uses:
            arguments = {"topic": topic, "partitions": PARTITIONS, "count": use.count(case, options.scale)}
            found = measure("consume", use, arguments, broker)
            results.add("consume", case.label, use.name, found)
            say(f"consume {case.label}: {use.name} {found['rate']:,.0f}/s, {found['cpu_us']:.2f} µs, {found['peak_mb']:.0f} MB")
    broker.delete_topic(topic)


def measure_latency(broker: BenchBroker, client: str, results: ClientResults) -> None:
    topic = broker.create_topic(1)
    where = {"use": client, "bootstrap": broker.bootstrap, "topic": topic, "count": LATENCY_RECORDS}
    consumer = start_child("awaited", {**where, "partitions": 1})
    assert consumer.stdout is not None
    consumer.stdout.readline()  # it waits for records
    sent = finish_child(start_child("paced", {**where, "rate": LATENCY_RATE}), f"the paced producer of {client}")
    read = finish_child(consumer, f"the waiting consumer of {client}")
    broker.delete_topic(topic)
    figures = {}
    for name, found in (("delivery", sent), ("end", read)):
        times_ms = [each / 1000 for each in found["us"][LATENCY_WARM_UP:]]
        figures |= {f"{name}_p50_ms": percentile(times_ms, 0.5), f"{name}_p99_ms": percentile(times_ms, 0.99)}
    results.add_latency(client, figures)
    say(f"latency: {client} " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))


def measure_waited(broker: BenchBroker, client: str, scale: float, results: ClientResults) -> None:
    """One record at a time: sent, and waited for."""
    topic = broker.create_topic(PARTITIONS)
    count = int(WAITED_RECORDS * scale) + LATENCY_WARM_UP
    where = {"use": client, "bootstrap": broker.bootstrap, "topic": topic, "count": count}
    found = finish_child(start_child("waited", where), f"the waiting caller of {client}")
    broker.delete_topic(topic)
    times_ms = [each / 1000 for each in found["us"][LATENCY_WARM_UP:]]
    figures = {"waited_p50_ms": percentile(times_ms, 0.5), "waited_p99_ms": percentile(times_ms, 0.99)}
    results.add_latency(client, figures)
    say(f"one at a time, waited for: {client} " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The options; a full run is kept unless it is told otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="produce,consume,latency,waited")
    parser.add_argument("--only", help="uses and clients, separated by ;")
    parser.add_argument("--cases", default=";".join(case.label for case in CASES), help="separated by ;")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction)
    options = parser.parse_args(arguments)
    is_full = options.only is None and not options.quick and options.cases == parser.get_default("cases")
    is_full = is_full and options.kinds == parser.get_default("kinds")
    if options.save is None:
        options.save = is_full
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.scale = QUICK_SCALE if options.quick else 1.0
    options.kinds = options.kinds.split(",")
    options.only = None if options.only is None else options.only.split(";")
    known = {case.label: case for case in CASES}
    wrong = [label for label in options.cases.split(";") if label not in known]
    if wrong:
        parser.error(f"there is no case {', '.join(wrong)}: cases are {'; '.join(known)}")
    options.cases = [known[label] for label in options.cases.split(";")]
    return options


def facts() -> dict[str, str]:
    return {**machine_facts(), **{name: version(name) for name in OTHERS}}


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    results = ClientResults(facts())

    def chosen(names: tuple[Use, ...]) -> list[Use]:
        return [use for use in names if options.only is None or use.name in options.only]

    with BenchBroker() as broker:
        if "produce" in options.kinds:
            for case in options.cases:
                for _ in range(options.rounds):
                    measure_produce(broker, case, chosen(PRODUCE), options.scale, results)
        if "consume" in options.kinds:
            for case in options.cases:
                measure_consume(broker, case, chosen(CONSUME), options, results)
        if "latency" in options.kinds:
            for _ in range(options.rounds):
                for client in LATENCY:
                    if options.only is None or client in options.only:
                        measure_latency(broker, client, results)
        if "waited" in options.kinds:
            for _ in range(options.rounds):
                for client in LATENCY:
                    if options.only is None or client in options.only:
                        measure_waited(broker, client, options.scale, results)
    print(report.terminal_text(results))
    if options.save:
        left = missing(results)
        if left:
            say(f"kept without {len(left)} measurements, the first is {left[0]}")
        report.keep(results)
        say("written to bench/clients/results.json, docs/benchmarks.md and README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
