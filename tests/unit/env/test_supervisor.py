"""Messages to the service manager: where they go, and what they leave in the environment."""

import os
import socket
from pathlib import Path

import pytest

from ottla.env.real.supervisor import NotifySocket


def manager_at(address: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind("\0" + address[1:] if address.startswith("@") else address)
    listening.settimeout(30)
    return listening


def made(environment: dict[str, str]) -> NotifySocket:
    found = NotifySocket.from_environment(environment)
    assert found is not None
    return found


@pytest.mark.parametrize("is_abstract", [False, True])
def test_each_message_is_one_datagram(tmp_path: Path, is_abstract: bool) -> None:
    address = f"@ottla-test-{os.getpid()}" if is_abstract else f"{tmp_path}/notify"
    with manager_at(address) as manager:
        told = made({"NOTIFY_SOCKET": address})
        assert told.tell("READY=1\nSTATUS=at 127.0.0.1:9092")
        assert told.tell("WATCHDOG=1")
        assert manager.recv(4096) == b"READY=1\nSTATUS=at 127.0.0.1:9092"
        assert manager.recv(4096) == b"WATCHDOG=1"
        told.close()


def test_variables_are_taken_out_of_the_environment(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": f"{tmp_path}/n", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/h"}
    assert made(environment).watchdog_s == 3.0
    assert environment == {"HOME": "/h"}
    assert NotifySocket.from_environment(environment) is None


@pytest.mark.parametrize(("usec", "pid"), [("", ""), ("0", ""), ("-1", ""), ("x", ""), ("3000000", "1")])
def test_nothing_is_fed_without_a_watchdog_for_this_process(tmp_path: Path, usec: str, pid: str) -> None:
    assert made({"NOTIFY_SOCKET": f"{tmp_path}/n", "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}).watchdog_s is None


def test_an_address_of_another_kind_is_refused_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    assert NotifySocket.from_environment({"NOTIFY_SOCKET": "vsock:2:1234"}) is None
    assert "NOTIFY_SOCKET=vsock:2:1234" in caplog.text


def test_a_full_socket_is_not_waited_for(tmp_path: Path) -> None:
    with manager_at(f"{tmp_path}/notify") as manager:
        told = made({"NOTIFY_SOCKET": f"{tmp_path}/notify"})
        taken = 0
        while told.tell("WATCHDOG=1"):
            taken += 1
            assert taken < 100_000, "the queue of the socket has no end"
        for _ in range(taken):
            manager.recv(4096)
        assert told.tell("STATUS=read again")


def test_a_manager_that_is_gone_is_complained_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = made({"NOTIFY_SOCKET": f"{tmp_path}/nobody"})
    assert told.tell("WATCHDOG=1")
    assert told.tell("WATCHDOG=1")
    assert caplog.text.count("takes no message") == 1
