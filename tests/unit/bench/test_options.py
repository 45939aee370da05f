"""ROWS, ROUNDS, QUICK and SAVE as make passes them: empty if they are not given."""

import pytest
from bench.side_by_side.errors import BadOption
from bench.side_by_side.options import ROWS, read_options


def test_default_is_a_full_run_that_is_kept() -> None:
    options = read_options({"ROWS": "", "ROUNDS": "", "QUICK": "", "SAVE": ""})
    assert (options.rows, options.rounds, options.quick, options.save) == (ROWS, 3, False, True)


def test_quick_and_partial_runs_are_kept_only_with_save() -> None:
    assert not read_options({"QUICK": "1"}).save
    assert not read_options({"ROWS": "consume"}).save
    assert read_options({"ROWS": "consume", "SAVE": "1"}).save
    assert not read_options({"SAVE": "0"}).save


def test_cpu_comes_with_produce() -> None:
    options = read_options({"ROWS": "produce, cpu", "ROUNDS": "5"})
    assert (options.rows, options.rounds) == (("produce",), 5)


def test_one_part_of_a_row() -> None:
    options = read_options({"ROWS": "produce:1kb-6"})
    assert options.wants("produce")
    assert options.wants_part("produce", "1kb-6")
    assert not options.wants_part("produce", "1kb-1")
    assert not options.wants("consume")


@pytest.mark.parametrize("environment", [{"ROWS": "speed"}, {"ROUNDS": "many"}, {"ROUNDS": "0"}])
def test_invalid_options_are_named(environment: dict[str, str]) -> None:
    (name,) = environment
    with pytest.raises(BadOption, match=name):
        read_options(environment)
