"""Ratios, their spread, goals and the JSON form of results."""

import json

import pytest
from bench.side_by_side.figures import Figure, Results, amount, at_least, at_most, ratio_text, samples_text


def test_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    figure = Figure("x", "x", "MB/s", other=[100, 50, 200], ottla=[150, 100, 200])
    assert figure.ratios == [1.5, 2.0, 1.0]
    assert figure.ratio == 1.5
    assert ratio_text(figure) == "1.50 (1.00–2.00)"


def test_a_reference_takes_apaches_place_in_the_ratio() -> None:
    figure = Figure("x", "x", "MB/s", [10.0], [60.0], at_least(0.6), [100.0], "the limit")
    assert figure.ratio == 0.6
    assert ratio_text(figure) == "0.60 of the limit"
    assert figure.verdict == "reached"


def test_different_numbers_of_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        _ = Figure("x", "x", "MB/s", [1.0, 2.0], [1.0]).ratio


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


def test_goals_read_as_in_the_speed_table() -> None:
    assert (str(at_least(1.15)), str(at_most(0.2))) == ("≥ 1.15 ×", "≤ 0.2 ×")


def test_numbers_have_three_significant_digits() -> None:
    assert [amount(value) for value in (1234.5, 123.4, 12.34, 1.234, 0.123)] == ["1,234", "123", "12.3", "1.23", "0.12"]
    assert samples_text([]) == "–"
    assert samples_text([2.0]) == "2.00"
    assert samples_text([1.0, 3.0, 2.0]) == "2.00 (1.00–3.00)"


def test_results_survive_a_round_trip_through_json() -> None:
    results = Results({"cpu": "c"}, micro={"log": {"rows": {"append": 1.5}}})
    results.add([Figure("a", "A", "s", [1.25], [2.5], at_most(2.0), [1.0], "quiet"), Figure("b", "B", "MB", [1.0], [2.0])])
    assert Results.from_json(json.loads(json.dumps(results.to_json()))) == results


def test_json_keeps_five_digits() -> None:
    results = Results()
    results.add([Figure("a", "A", "s", [1.23456789], [2.0])])
    assert results.to_json()["figures"][0]["other"] == [1.2346]
