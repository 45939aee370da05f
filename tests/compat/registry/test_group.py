"""Registries that join Confluent's group: an election as theirs, writes forwarded to the leader."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from tests.support.cases.registry_load import RegistryLoad, check_answers
from tests.support.cases.registry_requests import A

from ottla.client.cluster import open_cluster
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.registry.group import Address, RegistryGroup, elect, read_address
from ottla.registry.server import RegistryThread
from ottla.schemas import RegistryRefusedError, Schema, SchemaRegistry
from ottla.testing import Broker

GROUP = "schema-registry"
CONFLUENTS = b'{"version":1,"host":"b.example","port":8081,"master_eligibility":true,"scheme":"https","leader":false}'


def metadata(host: str, port: int = 8081, *, may_lead: bool = True) -> bytes:
    return json.dumps(Address("http", host, port, may_lead).as_json()).encode()


def test_metadata_is_confluents() -> None:
    assert read_address(CONFLUENTS) == Address("https", "b.example", 8081)
    assert json.dumps(Address("https", "b.example", 8081).as_json(), separators=(",", ":")).encode() == CONFLUENTS


def test_the_smallest_address_that_may_lead_leads() -> None:
    found = elect({"m1": metadata("c"), "m2": metadata("b"), "m3": metadata("a", may_lead=False), "m4": b"nonsense"})
    assert (found["version"], found["error"], found["master"]) == (1, 0, "m2")
    assert found["master_identity"]["host"] == "b"
    assert elect({"m": metadata("a", may_lead=False)})["master"] is None


def test_two_members_with_one_address_are_an_error() -> None:
    assert elect({"m1": metadata("a"), "m2": metadata("a")}) == {
        "version": 1,
        "error": 1,
        "master": None,
        "master_identity": None,
    }


@contextmanager
def members(servers: str, count: int) -> Iterator[list[str]]:
    with ExitStack() as closing:
        threads = [RegistryThread(admin_settings(servers, config={}, keywords={}), GROUP) for _ in range(count)]
        starts = [Thread(target=each.start) for each in threads]
        for each in starts:
            each.start()
        for start, thread in zip(starts, threads, strict=True):
            start.join()
            closing.callback(thread.close)
        yield [each.url for each in threads]


@pytest.mark.parametrize("server", ["ottla", pytest.param("apache", marks=pytest.mark.slow)])
def test_every_member_takes_writes_and_one_decides(server: str, request: pytest.FixtureRequest) -> None:
    with ExitStack() as closing:
        if server == "ottla":
            servers = closing.enter_context(Broker({"group.initial.rebalance.delay.ms": 200})).bootstrap_servers
        else:
            servers = closing.enter_context(request.getfixturevalue("apache_kafka").start_server()).bootstrap
        urls = closing.enter_context(members(servers, 2))
        SchemaRegistry(urls[0]).call("PUT", "/config", {"compatibility": "NONE"})
        load = RegistryLoad(urls)
        load.grow(30)
        load.stop()
        assert not load.refusals
        check_answers(urls, load.answers)


def test_writes_are_forwarded_to_a_leader_of_another_make() -> None:
    """A stand-in for Confluent's registry leads: it gets what we are sent, with its marks, and its answer is ours."""
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    class Leader(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.command, self.path, dict(self.headers), data))
            answer = b'{"error_code":42205,"message":"not today"}'
            self.send_response(422)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    async def lead(servers: str, address: Address, ready: Thread) -> None:
        cluster = open_cluster(real_client_world(), admin_settings(servers, config={}, keywords={}), "other")
        member = RegistryGroup(cluster, GROUP, address)
        task = asyncio.create_task(member.run())
        await member.changed.wait()
        ready.start()
        while ready.is_alive():
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        cluster.close()

    with Broker({"group.initial.rebalance.delay.ms": 200}) as broker:
        http = ThreadingHTTPServer(("127.0.0.1", 0), Leader)
        Thread(target=http.serve_forever, daemon=True).start()
        failures: list[BaseException] = []

        def use() -> None:
            try:
                with members(broker.bootstrap_servers, 1) as (url,):
                    registry = SchemaRegistry(url, auth=("ada", "secret"))
                    with pytest.raises(RegistryRefusedError, match="not today"):
                        registry.register("a/b", Schema(A))
                    assert registry.subjects() == []  # a read is answered here
                    assert registry.check("a/b", Schema(A)) == []
            except BaseException as failure:
                failures.append(failure)

        # "http://0..." is smaller than every address of 127.0.0.1, and the same machine.
        address = Address("http", "0", http.server_address[1])
        asyncio.run(lead(broker.bootstrap_servers, address, Thread(target=use)))
        http.shutdown()
        http.server_close()
        if failures:
            raise failures[0]
    ((method, path, headers, data),) = seen
    assert (method, path, json.loads(data)["schema"]) == ("POST", "/subjects/a%2Fb/versions", A)
    assert headers["X-Forward"] == "true"
    assert headers["Authorization"].startswith("Basic ")
