"""Ratios, their spread, goals and the JSON form of results."""

import json

import pytest
from bench.side_by_side.figures import Figure, Results, at_least, at_most, ratio_text


def test_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    figure = Figure("x", "x", "MB/s", other=[100, 50, 200], ottla=[150, 100, 200])
    assert figure.ratios == [1.5, 2.0, 1.0]
    assert figure.ratio == 1.5
    assert ratio_text(figure) == "1.50 (1.00–2.00)"


@pytest.mark.parametrize(
    ("goal", "ratio", "verdict"),
    [
        (at_least(1.15), 1.2, "reached"),
        (at_least(1.15), 1.146, "reached"),
        (at_least(1.0), 0.9, "missed by 10%"),
        (at_most(0.5), 0.5, "reached"),
        (at_most(0.5), 0.6, "missed by 20%"),
    ],
)
def test_verdicts(goal, ratio, verdict) -> None:  # type: ignore[no-untyped-def]  # parametrized
    assert goal.verdict(ratio) == verdict


def test_results_survive_a_round_trip_through_json() -> None:
    results = Results({"cpu": "c"}, micro={"log": {"rows": {"append": 1.5}}})
    results.add([Figure("a", "A", "s", [1.25], [2.5], at_most(2.0), [1.0], "quiet"), Figure("b", "B", "MB", [1.0], [2.0])])
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results
