"""Where Spark runs: checks `--master` and `--remote` before Java starts, so that a wrong one costs a sentence and no minute."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from ottla.errors import OttlaError

EXAMPLES = "local[4], spark://HOST:7077, yarn or k8s://https://HOST:6443"
CONNECT_PORT = 15002
TIMEOUT_S = 5.0
"""How long a cluster may take to accept a connection."""
_LOCAL = re.compile(r"local(\[(\*|\d+)(\s*,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/\s\[\]]+):(\d{1,5})")

_SETTINGS = b"\x04"
"""The type of a frame with settings, the fourth byte of its header of nine."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)


class NoSuchPlace(OttlaError):
    """Spark cannot run where it was told to."""


def check_place(master: str | None, remote: str | None) -> None:
    """Check what was given on the command line: before PySpark is imported, which takes seconds."""
    if remote is not None:
        check_remote(remote)
    elif master is not None:
        check_master(master)


def is_local(master: str) -> bool:
    """Whether Spark's tasks run in the driver, in the Python that runs this."""
    return master.startswith("local") and not master.startswith("local-cluster")


def check_master(master: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Raise `NoSuchPlace` for a master that cannot be; returns our own address as that master sees it, if it is known."""
    variables = os.environ if environment is None else environment
    if _LOCAL.fullmatch(master):
        return None
    if master == "yarn":
        if not variables.get("HADOOP_CONF_DIR") and not variables.get("YARN_CONF_DIR"):
            raise NoSuchPlace(
                "--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR: set it to the folder with the cluster's yarn-site.xml"
            )
        return None
    scheme, _, rest = master.partition("://")
    if scheme == "spark" and rest:
        return _own_address("Spark master", [_host_and_port(each, master) for each in rest.split(",")])
    if scheme == "k8s" and rest:
        parts = urlsplit(rest if "://" in rest else f"https://{rest}")
        port = _port(parts.netloc, master) or (80 if parts.scheme == "http" else 443)
        return _own_address("Kubernetes API", [(parts.hostname or "", port)])
    raise NoSuchPlace(f"{master} is no place where Spark runs: --master takes {EXAMPLES}")


def check_remote(remote: str) -> None:
    """Raise `NoSuchPlace` for a Spark Connect server that does not answer."""
    parts = urlsplit(remote)
    if parts.scheme != "sc" or not parts.hostname:
        raise NoSuchPlace(f"{remote} is no Spark Connect server: --remote takes sc://HOST:{CONNECT_PORT}")
    host, port = parts.hostname, _port(parts.netloc, remote) or CONNECT_PORT
    _own_address("Spark Connect server", [(host, port)])
    # A token means TLS too. PySpark would try for ten minutes to talk to something else.
    if not re.search(r"use_ssl=true|token=", parts.path, re.IGNORECASE) and not _speaks_http2(host, port):
        raise NoSuchPlace(f"what answers at {host}:{port} is no Spark Connect server: check the address")


def _port(netloc: str, text: str) -> int | None:
    try:
        return urlsplit(f"//{netloc}").port
    except ValueError:
        raise NoSuchPlace(f"{text} has no valid port: write a number up to 65535 after the last colon") from None


def _host_and_port(text: str, master: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text.strip())
    if found is None or int(found[2]) > 65535:
        raise NoSuchPlace(f"{master} is no address of a Spark master: write spark://HOST:PORT; the port is mostly 7077")
    return found[1].strip("[]"), int(found[2])


def _own_address(kind: str, places: list[tuple[str, int]]) -> str:
    """Our end of a connection to the first place that accepts one."""
    problems = []
    for host, port in places:
        try:
            with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            problems.append(f"the {kind} at {host}:{port} does not answer ({_reason(error)})")
    raise NoSuchPlace(f"{'; '.join(problems)}: start it, or check the address")


def _speaks_http2(host: str, port: int) -> bool:
    """Whether a server answers the greeting of HTTP/2, on which gRPC is built, with settings as it must."""
    answer = b""
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
            connection.sendall(_GREETING)
            while len(answer) < 9 and (part := connection.recv(9 - len(answer))):
                answer += part
    except OSError:
        return False
    return answer[3:4] == _SETTINGS


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {TIMEOUT_S:.0f} s"
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    return (error.strerror or str(error) or type(error).__name__).lower()
