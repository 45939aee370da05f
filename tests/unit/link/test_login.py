"""Logging in over a network in memory: every mechanism, refusals, and logging in again while requests wait."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode, all_versions
from tests.support.nodes.sasl_server import ILLEGAL_STATE, SaslServer

from ottla.env.real import RealRandomness
from ottla.link import AuthenticationFailed, ConnectFailed, Link, LinkOptions, LinkSecurity, SaslOptions
from ottla.link import link as link_module
from ottla.sim.loop import VirtualLoop
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

WHERE = ("localhost", 9092)
ALICE = {"alice": "secret"}
PASSWORD_MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
T = TypeVar("T")


def ask(name: str = "x") -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(cluster_id=request.topics[0].name if request.topics else "")


def node_of(server: SaslServer, **more: Any) -> FakeNode:
    return FakeNode({MetadataRequest: metadata, **server.handlers()}, **more)


async def connect(node: FakeNode, sasl: SaslOptions, **options: Any) -> Link:
    security = LinkSecurity(sasl=sasl)
    return await Link.connect(FakeNetwork({WHERE: node}), *WHERE, LinkOptions(security=security, **options), RealRandomness())


def talk(node: FakeNode, sasl: SaslOptions, script: Callable[[Link], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        link = await connect(node, sasl, **options)
        try:
            return await script(link)
        finally:
            link.close()

    return asyncio.run(run())


async def request(link: Link) -> Any:
    return await link.request(ask())


def failure(node: FakeNode, sasl: SaslOptions) -> str:
    with pytest.raises(AuthenticationFailed) as failed:
        talk(node, sasl, request)
    assert not failed.value.is_retriable
    assert failed.value.address == "localhost:9092"
    return str(failed.value)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_login_comes_between_versions_and_requests(mechanism: str) -> None:
    server = SaslServer(mechanism, ALICE)
    node = node_of(server)
    talk(node, SaslOptions(mechanism, "alice", "secret"), request)
    assert server.log == [mechanism, "alice"]
    kinds = [type(message).__name__.removesuffix("Request") for message, _ in node.asked]
    rounds = 1 if mechanism == "PLAIN" else 2
    assert kinds == ["ApiVersions", "SaslHandshake", *["SaslAuthenticate"] * rounds, "Metadata"]
    assert [version for message, version in node.asked if isinstance(message, SaslHandshakeRequest)] == [1]


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_wrong_password(mechanism: str) -> None:
    text = failure(node_of(SaslServer(mechanism, ALICE)), SaslOptions(mechanism, "alice", "wr0ng"))
    assert (
        f"localhost:9092 refused the login of user alice with {mechanism}: Authentication failed: invalid credentials" in text
    )
    assert "Check user name and password" in text
    assert "wr0ng" not in text


def test_mechanism_that_is_not_offered() -> None:
    text = failure(node_of(SaslServer("PLAIN", ALICE)), SaslOptions("SCRAM-SHA-512", "alice", "secret"))
    assert "does not offer the SASL mechanism SCRAM-SHA-512; it offers: PLAIN. Choose one of those (sasl.mechanism)" in text


def test_listener_without_login() -> None:
    plain = SaslOptions("PLAIN", "alice", "secret")
    node = FakeNode({SaslHandshakeRequest: lambda request, version: SaslHandshakeResponse(error_code=ILLEGAL_STATE)})
    assert "does not want a login here" in failure(node, plain)
    assert "cannot log anybody in with SASL" in failure(FakeNode({}, all_versions(SaslHandshake=None)), plain)
    assert "older than Kafka 1.0" in failure(FakeNode({}, all_versions(SaslHandshake=(0, 0))), plain)


def test_node_that_hangs_up_during_the_login() -> None:
    node = FakeNode({SaslHandshakeRequest: lambda request, version: HANG_UP})
    with pytest.raises(ConnectFailed, match=r"It ended during the login") as failed:
        talk(node, SaslOptions("PLAIN", "alice", "secret"), request)
    assert failed.value.is_retriable


def test_silent_node_is_left_at_the_connect_timeout() -> None:
    node = FakeNode({SaslHandshakeRequest: lambda request, version: None})
    with pytest.raises(ConnectFailed, match=r"localhost:9092 did not finish the login within 20 ms"):
        talk(node, SaslOptions("PLAIN", "alice", "secret"), request, connect_timeout_ms=20)


def test_node_that_never_comes_to_an_end() -> None:
    endless = SaslAuthenticateResponse(auth_bytes=b"more")
    node = node_of(SaslServer("OAUTHBEARER", {}))
    node.handlers[SaslAuthenticateRequest] = lambda request, version: endless
    assert "refuses the token: more" in failure(node, SaslOptions("OAUTHBEARER", token=lambda: "t"))


def test_impostor_that_does_not_know_the_password() -> None:
    server = SaslServer("SCRAM-SHA-256", ALICE)
    node = node_of(server)

    def lie(request: SaslAuthenticateRequest, version: int) -> object:
        answer: Any = server.authenticate(request, version)
        if answer.error_code == 0 and bytes(answer.auth_bytes).startswith(b"r="):
            return answer
        return SaslAuthenticateResponse(auth_bytes=b"v=AAAA")

    node.handlers[SaslAuthenticateRequest] = lie
    text = failure(node, SaslOptions("SCRAM-SHA-256", "alice", "secret"))
    assert (
        "the login of user alice at localhost:9092 with SCRAM-SHA-256 failed: the node does not follow SCRAM: it cannot prove"
        in text
    )


def test_scram_without_randomness() -> None:
    async def run() -> None:
        options = LinkOptions(security=LinkSecurity(sasl=SaslOptions("SCRAM-SHA-256", "alice", "secret")))
        with pytest.raises(ValueError, match=r"pass `randomness` to Link.connect"):
            await Link.connect(FakeNetwork({WHERE: node_of(SaslServer("SCRAM-SHA-256", ALICE))}), *WHERE, options)

    asyncio.run(run())


# Tokens


async def async_token() -> str:
    return "good"


@pytest.mark.parametrize(
    "provider",
    [lambda: "good", async_token, lambda: async_token(), lambda: ("good", None, {}), lambda: ("good", 1e10, {"a": "b"})],
)
def test_token_functions(provider: Any) -> None:
    server = SaslServer("OAUTHBEARER", {"good": ""})
    talk(node_of(server), SaslOptions("OAUTHBEARER", token=provider), request)
    assert server.log[1].startswith("n,,\x01auth=Bearer good\x01")


def test_refused_token() -> None:
    text = failure(node_of(SaslServer("OAUTHBEARER", {"good": ""})), SaslOptions("OAUTHBEARER", token=lambda: "bad"))
    assert "refused the login with OAUTHBEARER: Authentication failed" in text
    assert "Check that the token is valid" in text


def test_token_function_that_fails() -> None:
    def fail() -> str:
        raise OSError("the issuer is down")

    node = node_of(SaslServer("OAUTHBEARER", {}))
    assert "the function that returns the token raised OSError: the issuer is down" in failure(
        node, SaslOptions("OAUTHBEARER", token=fail)
    )
    wrong: Any = lambda: 7  # noqa: E731
    assert "the function that returns the token returned int" in failure(node, SaslOptions("OAUTHBEARER", token=wrong))


# Logging in again, in virtual time


def in_virtual_time(script: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await script()

    VirtualLoop(10_000).run(run())


def test_link_logs_in_again_before_the_session_ends() -> None:
    server = SaslServer("SCRAM-SHA-256", ALICE, session_ms=60_000)

    async def script() -> None:
        link = await connect(node_of(server), SaslOptions("SCRAM-SHA-256", "alice", "secret"))
        begun_s = asyncio.get_running_loop().time()
        for number in range(1, 5):
            while link.counters.logins <= number:
                await asyncio.sleep(1)
            assert 0.84 * 60 <= (asyncio.get_running_loop().time() - begun_s) / number <= 0.97 * 60 + 1
            assert (await link.request(ask())).cluster_id == "x"
        link.close()

    in_virtual_time(script)


def test_logins_neither_count_as_requests_nor_keep_an_idle_link_alive() -> None:
    server = SaslServer("PLAIN", ALICE, session_ms=60_000)

    async def script() -> None:
        link = await connect(node_of(server), SaslOptions("PLAIN", "alice", "secret"))
        await link.request(ask())
        idle_since_s = link.idle_since_s
        while link.counters.logins < 3:
            await asyncio.sleep(1)
        assert link.idle_since_s == idle_since_s
        assert (link.counters.requests, link.counters.answers) == (1, 1)
        link.close()

    in_virtual_time(script)


def test_short_sessions_keep_kafkas_distance() -> None:
    server = SaslServer("PLAIN", ALICE, session_ms=10)

    async def script() -> None:
        link = await connect(node_of(server), SaslOptions("PLAIN", "alice", "secret"))
        await asyncio.sleep(10)
        assert link.counters.logins <= 1 + 10 / link_module.REAUTHENTICATE_S_MIN
        assert link.counters.logins > 5
        link.close()

    in_virtual_time(script)


def test_requests_wait_for_the_login_and_the_login_for_those_in_flight() -> None:
    server = SaslServer("PLAIN", ALICE, session_ms=60_000)
    node = node_of(server)
    parked: list[Any] = []
    node.handlers[MetadataRequest] = lambda request, version: (
        parked.append(request) if not parked else metadata(request, version)
    )

    async def script() -> None:
        link = await connect(node, SaslOptions("PLAIN", "alice", "secret"))
        long = link.send(ask("parked"), timeout_ms=600_000)
        await asyncio.sleep(70)
        assert link.counters.logins == 1, "the login waits for the parked request"
        waiting = [link.send(ask(str(number))) for number in range(3)]
        await asyncio.sleep(1)
        assert not any(each.done() for each in waiting)
        first = next(iter(link._waiting.values())).request
        link._answered(link_module.Answer(first, MetadataResponse(cluster_id="late")))
        link._conversation._expected.clear()
        assert (await long).cluster_id == "late"
        assert [(await each).cluster_id for each in waiting] == ["0", "1", "2"]
        assert link.counters.logins == 2
        kinds = [type(message).__name__ for message, _ in node.asked]
        assert kinds[-5:] == ["SaslHandshakeRequest", "SaslAuthenticateRequest", *["MetadataRequest"] * 3]
        link.close()

    in_virtual_time(script)


def test_login_that_is_refused_later_ends_the_link() -> None:
    server = SaslServer("PLAIN", ALICE, session_ms=60_000)

    async def script() -> None:
        link = await connect(node_of(server), SaslOptions("PLAIN", "alice", "secret"))
        server.users.clear()
        while not link.is_over:
            await asyncio.sleep(1)
        with pytest.raises(AuthenticationFailed, match="refused the login of user alice"):
            await link.request(ask())

    in_virtual_time(script)


def test_closing_during_a_login_leaves_no_task() -> None:
    async def slow() -> str:
        if link is not None:
            await asyncio.sleep(1000)
        return "good"

    link: Link | None = None

    async def script() -> None:
        nonlocal link
        server = SaslServer("OAUTHBEARER", {"good": ""}, session_ms=60_000)
        link = await connect(node_of(server), SaslOptions("OAUTHBEARER", token=slow))
        await asyncio.sleep(70)
        task = link._login
        assert task is not None
        link.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert task.cancelled()

    in_virtual_time(script)
