"""Every forwardable API through every broker of three: the controller's answer; without a controller, an error to retry on."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_cluster import NODES, OttlaCluster
from tests.support.sweep.admin_cases import tables_of_cases
from tests.support.sweep.sweep import Case, differences, normalised, versions_of

from ottla.broker.requests.apis import ON_BROKER
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest

FORWARDED = sorted(key for key in ON_BROKER if APIS[key].is_forwardable)
REFUSED_BY_THE_BROKER = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
"""Clients of a PLAINTEXT listener get no tokens."""
REQUEST_TIMEOUT_S = 30
"""A client's request.timeout.ms."""
NOT_OF_THE_CONTROLLER = {"change the broker", "alter a fixed setting of the broker", "change a fixed setting of the broker"}
"""Cases about broker 1: only that broker answers them."""


def cases(place: str = "x") -> Iterator[Case]:
    """The cases of all forwardable APIs, each in its newest version."""
    for api_key, table in tables_of_cases().items():
        newest = versions_of(api_key)[-1]
        for name, make in table(place).items():
            if api_key in FORWARDED and name not in NOT_OF_THE_CONTROLLER and make(newest) is not None:
                yield Case(f"{APIS[api_key].name}: {name}", newest, lambda make=make, newest=newest: make(newest))  # type: ignore[misc,return-value]


def are_all_unfenced(bootstrap: str) -> bool:
    with RawClient.to(bootstrap) as client:
        found = client.request(DescribeClusterRequest(), 1).brokers
    return len(found) == len(NODES)


def replies_through(bootstrap: str) -> dict[str, Any]:
    """The answer to every case, in turn, on new topics."""
    await_true(lambda: are_all_unfenced(bootstrap), "all brokers are in the cluster")
    replies = {}
    with RawClient.to(bootstrap) as client:
        made = client.request(CreateTopicsRequest(topics=topics_of_the_cases(), timeout_ms=30_000), 7).topics
        assert {each.error_code for each in made} == {ErrorCode.NONE}
    for case in cases():
        with RawClient.to(bootstrap) as client:
            request = case.make()
            replies[str(case)] = normalised(client.request(request, case.version), request.KEY, [])
    return replies


def topics_of_the_cases() -> list[CreatableTopic]:
    """All on broker 1: what a reassignment or an election answers depends on the place."""
    return [
        CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in range(partitions)],
        )
        for name, partitions in {"sweep": 2, "keyed": 1, "shrinking": 1, "grown": 1}.items()
    ]


def codes_in(reply: Any) -> set[int]:
    """All error codes of a normalised reply."""
    if isinstance(reply, list):
        return set().union(*map(codes_in, reply))
    if not isinstance(reply, dict):
        return set()
    own = {reply["error_code"]} if "error_code" in reply else set()
    return own.union(*map(codes_in, reply.values()))


def test_every_forwardable_api_has_a_case() -> None:
    assert {case.make().KEY for case in cases()} == set(FORWARDED)


@pytest.mark.slow
def test_every_broker_gives_the_controllers_answer(tmp_path: Path) -> None:
    """The same requests to three new clusters, through the controller's own broker and through the two others."""
    found: dict[str, dict[str, Any]] = {}
    for role in ("controller", "first other", "second other"):
        (tmp_path / role).mkdir()
        with OttlaCluster(tmp_path / role, {"auto.create.topics.enable": "false"}) as cluster:
            active = cluster.active_controller()
            others = [node for node in NODES if node != active]
            node = {"controller": active, "first other": others[0], "second other": others[1]}[role]
            found[role] = replies_through(cluster.nodes[node].bootstrap)
            (described,) = found[role]["DescribeQuorum: quorum v2"]["topics"][0]["partitions"]
            assert described.pop("leader_id") == active
    assert len(found["controller"]) > 60
    for role in ("first other", "second other"):
        wrong = [
            f"{role}: {name}{line}"
            for name, reply in found["controller"].items()
            for line in differences(found[role][name], reply)
        ]
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("survivors", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_no_request_hangs_while_controllers_are_killed(survivors: int, tmp_path: Path) -> None:
    """With two nodes left another controller answers; with one left, every request fails in time, to be tried again."""
    with OttlaCluster(tmp_path) as cluster:
        active = cluster.active_controller()
        left = [node for node in NODES if node != active][:survivors]
        await_true(lambda: are_all_unfenced(cluster.nodes[left[0]].bootstrap), "all brokers are in the cluster")
        one_each: dict[int, Case] = {}
        for case in cases("killed"):
            if (key := case.make().KEY) not in REFUSED_BY_THE_BROKER:
                one_each.setdefault(key, case)

        def ask(node: int, case: Case) -> tuple[str, float, set[int]]:
            began_s = time.monotonic()
            request = case.make()
            with RawClient.to(cluster.nodes[node].bootstrap, timeout_s=3 * REQUEST_TIMEOUT_S) as client:
                reply = client.request(request, case.version)
            return str(case), time.monotonic() - began_s, codes_in(normalised(reply, request.KEY, []))

        with ThreadPoolExecutor(len(left) * len(one_each)) as pool:
            for node in NODES:
                if node not in left:
                    cluster.kill(node)
            asking = [pool.submit(ask, node, case) for node in left for case in one_each.values()]
            answers = [each.result() for each in asking]
        for name, took_s, codes in answers:
            assert took_s < REQUEST_TIMEOUT_S, f"{name} took {took_s:.1f} s"
            if survivors == 1:
                wrong = [ErrorCode(code).name for code in codes if code and not ErrorCode(code).retriable]
                assert not wrong, f"{name}: {wrong}"
                assert codes != {0}, f"{name} succeeded without a controller"
