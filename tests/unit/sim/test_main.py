"""`python -m ottla.sim`: seeds in one process and in several, what is printed, and the exit code."""

import sys

import pytest

from ottla.sim import __main__ as command
from ottla.sim.run import RunFailed


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["python -m ottla.sim", *arguments])
    monkeypatch.setattr(command, "_prepare", lambda is_logged: None)  # settings of the whole process
    return command.main()


@pytest.mark.slow
def test_several_processes_print_what_one_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--seed", "3", "--count", "5") == 0
    alone = capsys.readouterr().out.splitlines()
    assert run(monkeypatch, "--seed", "3", "--count", "5", "--jobs", "2") == 0
    shared = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in alone[:-1]] == [["seed", str(seed)] for seed in range(3, 8)]
    assert shared[:-1] == alone[:-1]
    assert shared[-1].startswith("5 seeds held, 0 failed, ")


def test_failed_seed_is_printed_and_the_others_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_seed = command.run_seed

    def fail_one(seed: int) -> object:
        if seed == 1:
            raise RunFailed(seed, ValueError("broken"), [])
        return run_seed(seed)

    monkeypatch.setattr(command, "run_seed", fail_one)
    assert run(monkeypatch, "--count", "3") == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("broken" in line for line in lines)
    assert [line.split()[1] for line in lines if line.startswith("seed ") and "lives=" in line] == ["0", "2"]
    assert lines[-1].startswith("2 seeds held, 1 failed, ")
