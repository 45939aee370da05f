"""Masters and servers that are wrong or away cost a sentence."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla.spark.places import NoSuchPlace, check_master, check_remote, is_local


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local[2,3]", "local-cluster[2,1,1024]"])
def test_local_masters_need_no_address(master: str) -> None:
    assert check_master(master) is None


def test_only_threads_of_the_driver_are_local() -> None:
    assert is_local("local[*]")
    assert not is_local("local-cluster[2,1,1024]")
    assert not is_local("spark://local:7077")


def test_reachable_master_gives_our_own_address(port: int, closed_port: int) -> None:
    assert check_master(f"spark://127.0.0.1:{port}") == "127.0.0.1"
    assert check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}") == "127.0.0.1"
    assert check_master(f"k8s://https://127.0.0.1:{port}") == "127.0.0.1"
    assert check_master(f"k8s://127.0.0.1:{port}") == "127.0.0.1"
    check_remote(f"sc://127.0.0.1:{port}/;use_ssl=true")


@pytest.mark.parametrize(
    ("answer", "is_server"),
    [(bytes([0, 0, 6, 4, 0, 0, 0, 0, 0]), True), (b"HTTP/1.1 400 Bad Request", False), (b"", False)],
    ids=["http2", "http1", "hangs-up"],
)
def test_server_must_speak_http2(answer: bytes, is_server: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        told = threads.submit(_answer_second, server, answer)
        remote = f"sc://127.0.0.1:{server.getsockname()[1]}/;user_id=ann"
        if is_server:
            check_remote(remote)
        else:
            with pytest.raises(NoSuchPlace, match="is no Spark Connect server: check the address"):
                check_remote(remote)
        assert told.result(30).startswith(b"PRI * HTTP/2.0")


def _answer_second(server: socket.socket, answer: bytes) -> bytes:
    """The first connection only sees whether there is a server."""
    server.accept()[0].close()
    connection, _ = server.accept()
    with connection:
        received = connection.recv(1000)
        connection.sendall(answer)
        return received


def test_master_that_is_away_is_named(closed_port: int) -> None:
    away = f"the Spark master at 127.0.0.1:{closed_port} does not answer (connection refused): start it, or check the address"
    with pytest.raises(NoSuchPlace) as found:
        check_master(f"spark://127.0.0.1:{closed_port}")
    assert str(found.value) == away
    with pytest.raises(NoSuchPlace, match=f"the Spark Connect server at 127.0.0.1:{closed_port} does not answer"):
        check_remote(f"sc://127.0.0.1:{closed_port}")
    with pytest.raises(NoSuchPlace, match=r"the Kubernetes API at nowhere\.invalid:443 .* \(there is no such host\)"):
        check_master("k8s://https://nowhere.invalid")


@pytest.mark.parametrize("master", ["sparc://h:7077", "local[x]", "mesos://h:5050", "spark://", "", "yarn-client"])
def test_unknown_master_is_told_what_there_is(master: str) -> None:
    with pytest.raises(NoSuchPlace, match=r"--master takes local\[4\], spark://HOST:7077, yarn or k8s://"):
        check_master(master)


@pytest.mark.parametrize("master", ["spark://host", "spark://host:70777", "spark://host:7077/x", "spark://a:1,b"])
def test_master_without_a_port_is_told_the_form(master: str) -> None:
    with pytest.raises(NoSuchPlace, match="write spark://HOST:PORT"):
        check_master(master)


@pytest.mark.parametrize("remote", ["host:15002", "http://host", "sc://"])
def test_remote_of_another_form_is_refused(remote: str) -> None:
    with pytest.raises(NoSuchPlace, match="--remote takes sc://HOST:15002"):
        check_remote(remote)


def test_port_that_is_no_number_is_refused() -> None:
    with pytest.raises(NoSuchPlace, match="has no valid port"):
        check_remote("sc://host:x")


def test_yarn_needs_the_configuration_of_its_cluster() -> None:
    with pytest.raises(NoSuchPlace, match="HADOOP_CONF_DIR or YARN_CONF_DIR"):
        check_master("yarn", {})
    assert check_master("yarn", {"YARN_CONF_DIR": "/etc/hadoop"}) is None
