"""A server whose port was taken is made again, with other ports; other failures are not hidden."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.kafka_server import START_ATTEMPTS, KafkaServer, ServerFailed, start_on_free_ports


class Failing(KafkaServer):
    """Fails to start with a log of this text; without one, it starts."""

    def __init__(self, log: str, folder: Path) -> None:
        super().__init__(["true"], {}, folder, name="a server")
        self._log = log
        self.is_killed = False

    def start(self, ready_timeout_s: float = 0) -> None:
        if self._log:
            raise ServerFailed(self._log)

    def log_text(self) -> str:
        return self._log

    def kill(self) -> None:
        self.is_killed = True
        super().kill()


def start(logs: list[str], folder: Path) -> tuple[KafkaServer | None, list[Any], list[Any]]:
    """The server that runs, all that were made, and those that were formatted."""
    made: list[Any] = []
    formatted: list[Any] = []

    def make() -> KafkaServer:
        made.append(Failing(logs[len(made)], folder))
        return made[-1]

    try:
        return start_on_free_ports(make, formatted.append, 1.0), made, formatted
    except ServerFailed:
        return None, made, formatted


def test_server_whose_port_was_taken_is_made_again(tmp_path: Path) -> None:
    server, made, formatted = start(["Address already in use", "the port is in use", ""], tmp_path)
    assert server is made[2]
    assert formatted == made
    assert [each.is_killed for each in made] == [True, True, False]
    server.kill()


@pytest.mark.parametrize(("logs", "attempts"), [(["no space left"], 1), (["in use"] * START_ATTEMPTS, START_ATTEMPTS)])
def test_other_failures_and_too_many_end_it(logs: list[str], attempts: int, tmp_path: Path) -> None:
    server, made, _ = start(logs, tmp_path)
    assert (server, len(made)) == (None, attempts)
    assert all(each.is_killed for each in made)


def test_formatted_directory_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    server, made, formatted = start([""], tmp_path)
    assert server is made[0]
    assert formatted == []
    server.kill()
