"""The progress line and the messages of `ottla produce`."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.cli.produce.lines import Input
from ottla.cli.produce.sending import STALLED_AFTER_S, Ledger, Progress


class Terminal(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def screen(self) -> str:
        """What the last line shows."""
        return self.getvalue().split("\n")[-1].split("\r")[-1].rstrip()


class Counts(Ledger):
    """A ledger with numbers that the test sets."""

    waiting = 0

    @property
    def pending(self) -> int:
        return self.waiting


Make = Callable[..., tuple[Terminal, Counts, Input, Progress]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Makes a progress on a terminal or pipe, called within the test, because pytest sets standard error when it starts."""

    def make_one(is_sized: bool = True, is_terminal: bool = True) -> tuple[Terminal, Counts, Input, Progress]:
        screen = Terminal(is_terminal)
        monkeypatch.setattr("sys.stderr", screen)
        return screen, *make_progress(tmp_path, is_sized)

    return make_one


def make_progress(tmp_path: Path, is_sized: bool) -> tuple[Counts, Input, Progress]:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 1000)
    ledger = Counts()
    source = Input([str(file) if is_sized else "/dev/null"], None)
    return ledger, source, Progress(ledger, source)


def test_percent_is_of_what_is_stored(make: Make) -> None:
    terminal, ledger, source, progress = make()
    ledger.read, ledger.stored, source.read_bytes = 10, 5, 800
    progress.look(progress._start_s + 2)
    assert terminal.screen() == " 40 %  5 records stored, 2/s, 200 bytes/s"
    progress.clear()
    assert terminal.screen() == ""


def test_no_percent_without_a_size(make: Make) -> None:
    terminal, ledger, source, progress = make(is_sized=False)
    ledger.read, ledger.stored, source.read_bytes = 10, 10, 800
    progress.look(progress._start_s + 1)
    assert terminal.screen() == "10 records stored, 10/s, 800 bytes/s"


def test_no_line_beside_a_prompt(make: Make) -> None:
    terminal, ledger, source, _ = make()
    ledger.read, ledger.stored, source.read_bytes = 10, 10, 800
    progress = Progress(ledger, source, has_prompt=True)
    progress.look(progress._start_s + 1)
    assert terminal.getvalue() == ""


def test_lost_broker_and_its_return_are_told(make: Make) -> None:
    terminal, ledger, _, progress = make()
    ledger.read, ledger.waiting, ledger.stored = 10, 5, 5
    start_s = progress._start_s
    progress.look(start_s + 1)
    ledger.stored = 6
    progress.client_says("the broker is lost")
    progress.look(start_s + 31)
    assert "again" not in terminal.getvalue(), "the sixth record was stored before"
    assert "ottla: the broker is lost\n" in terminal.getvalue()
    assert terminal.screen().endswith("waiting for 30 s")
    ledger.stored, ledger.waiting = 10, 0
    progress.look(start_s + 32)
    assert "ottla: records are being stored again\n" in terminal.getvalue()
    assert "waiting" not in terminal.screen()
    progress.is_ending = True
    progress.client_says("closed too early")
    assert "closed too early" not in terminal.getvalue()


def test_silence_is_told_once_also_without_a_terminal(make: Make) -> None:
    pipe, ledger, _, progress = make(is_terminal=False)
    ledger.read = ledger.waiting = 3
    for seconds in (1.0, STALLED_AFTER_S, STALLED_AFTER_S + 1):
        progress.look(progress._start_s + seconds)
    assert pipe.getvalue() == "ottla: no answer for 5 s to 3 records: the brokers are slow, or cannot be reached\n"


def test_waiting_for_input_is_no_silence(make: Make) -> None:
    terminal, _, _, progress = make()
    progress.look(progress._start_s + 100)
    assert "no answer" not in terminal.getvalue()


def test_interrupt_says_what_is_waited_for(make: Make) -> None:
    terminal, ledger, _, progress = make()
    progress.interrupted(5)
    assert terminal.getvalue() == ""
    ledger.waiting = 2
    progress.interrupted(5)
    assert terminal.getvalue() == "ottla: ending: up to 5 s for 2 records to be stored; Ctrl-C ends at once\n"
