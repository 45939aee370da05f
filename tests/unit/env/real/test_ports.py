"""Reserved ports: free for a process that listens with SO_REUSEADDR, and for no other."""

import socket
from contextlib import closing

import pytest

from ottla.env.real.ports import ReservedPorts


def test_ports_are_all_different() -> None:
    with closing(ReservedPorts("127.0.0.1", 18)) as reserved:
        assert len(set(reserved.ports)) == 18


def test_a_listener_gets_the_port_again_and_again() -> None:
    with closing(ReservedPorts("127.0.0.1", 1)) as reserved:
        address = ("127.0.0.1", reserved.ports[0])
        for _ in range(2):
            with socket.create_server(address), socket.create_connection(address):
                pass  # create_server sets SO_REUSEADDR, as RealNetwork does


def test_connections_are_refused_while_nobody_listens() -> None:
    with closing(ReservedPorts("127.0.0.1", 1)) as reserved, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", reserved.ports[0]))


def test_others_do_not_get_the_port() -> None:
    with closing(ReservedPorts("127.0.0.1", 1)) as reserved, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", reserved.ports[0]))


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="assign"):
        ReservedPorts("192.0.2.1", 1)
