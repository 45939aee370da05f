"""One PostgreSQL server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.servers.postgres_server import PostgresServer, postgres_programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server; each test uses tables of its own."""
    pytest.importorskip("psycopg")
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb on the PATH or in /usr/lib/postgresql")
    server = PostgresServer(programs)
    yield server
    server.close()
