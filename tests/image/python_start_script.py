"""Prints how testcontainers for Python starts the image: variables, command, start script and the line it waits for.

No engine is asked: what would reach it is printed instead, in the lines of `StartScripts.java`.
"""

import shlex
import sys
from unittest import mock

from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy


def show(kind: str, name: str, content: str) -> None:
    print(kind, name, content.encode().hex(), sep="\t")


class Shown(KafkaContainer):
    def get_container_host_ip(self) -> str:
        return "localhost"

    def get_exposed_port(self, port: int) -> int:
        return port

    def create_file(self, content: bytes, path: str) -> None:
        show("file", path, content.decode())


def main() -> None:
    with (
        mock.patch("testcontainers.core.container.DockerClient"),
        mock.patch.object(DockerContainer, "start", lambda self: self),
        mock.patch.object(LogMessageWaitStrategy, "wait_until_ready", lambda self, container: None),  # noqa: PT008,
    ):
        container = Shown("ottla:7.6.0")
        if sys.argv[1] == "kraft":
            container.with_kraft()
        container.start()
    for name, value in container.env.items():
        show("variable", name, str(value))
    for part in shlex.split(container._command):
        show("command", "", part)
    show("line", "", container.wait_for.pattern)


main()
