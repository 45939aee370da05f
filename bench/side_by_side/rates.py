"""Rounds of a Java load that prints a rate per second: `{"per_s": …}`."""

import json

from bench.side_by_side.sides import Bench


def measure_rates(bench: Bench, what: str, main_class: str, *arguments: object) -> tuple[list[float], list[float]]:
    """The rates of both sides, one per round. The class gets the address, `arguments`, and a name for this run."""
    rates: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, kept in zip(bench.pair, rates, strict=True):
            name = f"{main_class.lower()}-{number}"
            kept.append(float(json.loads(bench.run_class(main_class, side.server.bootstrap, *arguments, name))["per_s"]))
            bench.progress.say(f"{what}, round {number} of {bench.options.rounds}: {side.label} {kept[-1]:,.0f} per s")
    return rates
