"""Dispatch: handlers are found and called; failures become responses or close connections, and are logged."""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from tests.support.nodes.net_server import EchoServer, hello, produce, reply_to_shake, shake

from ottla.broker.loggers import PythonLoggers
from ottla.broker.requests import pipeline as requests_pipeline
from ottla.broker.requests.apis import ON_BROKER, ON_CONTROLLER, load_handler
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, RequestContext
from ottla.broker.requests.interception import Interception
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import Route
from ottla.errors import BrokenInvariant, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.codec import decode_all
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeResponse

Test = Callable[[EchoServer, ConnectionInfo], Awaitable[None] | None]


def run(test: Test, is_controller: bool = False) -> None:
    async def whole() -> None:
        server = EchoServer(SimNetwork().host("server"))
        info = ConnectionInfo(1, "CONTROLLER" if is_controller else "PLAINTEXT", ("peer.example", 5123), is_controller)
        done = test(server, info)
        if done is not None:
            await done

    VirtualLoop(1000).run(whole())


def ask(server: EchoServer, info: ConnectionInfo, request: bytes) -> bytes:
    """The reply's frame, without its size; a request that is parked has none yet."""
    parts = server.pipeline.handle(info, bytearray(request[4:]))
    assert isinstance(parts, list)
    return b"".join(parts)[4:]  # type: ignore[arg-type]


def test_a_request_is_answered_and_counted() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        request = shake("plain", 77)
        reply = ask(server, info, request)
        assert reply_to_shake(reply) == (77, SaslHandshakeResponse(mechanisms=["plain"]))
        counters = server.pipeline.counters.apis[ApiKey.SASL_HANDSHAKE]
        assert (counters.requests, counters.errors) == (1, 0)
        assert (counters.bytes_in, counters.bytes_out) == (len(request) - 4, len(reply) + 4)

    run(test)


@pytest.mark.parametrize("mechanism", ["plain", "refuse", "raise", "close"])
def test_large_requests_are_parsed_off_the_loop_and_answered_as_others(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_pipeline, "PARSED_ON_LOOP_BYTES", 100)

    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        large = shake(mechanism + " " * 100, 78)
        parked = server.pipeline.handle(info, bytearray(large[4:]))
        assert isinstance(parked, Parked)
        assert server.asked == []
        while not parked.is_ready:
            await asyncio.sleep(0)
        assert len(server.asked) == 1
        if mechanism == "close":
            assert parked.fault is not None
        else:
            assert parked.parts is not None
            number, response = reply_to_shake(b"".join(parked.parts)[4:])  # type: ignore[arg-type]
            assert number == 78
            assert bool(response.error_code) == (mechanism != "plain")

    run(test)


def test_large_frame_that_is_no_request_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_pipeline, "PARSED_ON_LOOP_BYTES", 100)

    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        parked = server.pipeline.handle(info, bytearray(shake("x" * 200, 78)[4:-10]))
        assert isinstance(parked, Parked)
        while not parked.is_ready:
            await asyncio.sleep(0)
        assert parked.fault is not None
        with pytest.raises(CloseConnection):
            server.pipeline.handle(info, bytearray(b"\x7f\xff" * 100))

    run(test)


def test_large_request_that_fails_on_the_fast_path_is_not_handled_again(caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        server.pipeline._fast_paths[ApiKey.SASL_HANDSHAKE] = cast(Any, SimpleNamespace(answer=lambda frame, grants: 1 // 0))
        reply = ask(server, info, shake("x" * 32_767, 78))
        assert reply_to_shake(reply)[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert server.asked == []
        assert "ZeroDivisionError" in caplog.text

    run(test)


@pytest.mark.parametrize("where", ["load", "parse"])
def test_failed_import_closes_the_connection_and_is_tried_again(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when all file descriptors are in use."""

    def fail(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    def test(server: EchoServer, info: ConnectionInfo) -> None:
        with monkeypatch.context() as patched:
            if where == "load":
                patched.setattr(server.pipeline, "_load", fail)
            else:
                patched.setattr(requests_pipeline, "parse_request", fail)
            with pytest.raises(CloseConnection, match="Too many open files"):
                ask(server, info, shake("plain", 77))
        assert "peer.example:5123 on PLAINTEXT after the code for its request could not be loaded: OSError" in caplog.text
        assert reply_to_shake(ask(server, info, shake("plain", 78)))[0] == 78

    run(test)


def test_no_answer_is_wanted() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        assert server.pipeline.handle(info, bytearray(produce("a", acks=0)[4:])) is None

    run(test)


def test_a_parked_request_is_timed_until_it_is_answered() -> None:
    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        parked = server.pipeline.handle(info, bytearray(shake("park a", 5)[4:]))
        assert isinstance(parked, Parked)
        assert not parked.is_ready
        await asyncio.sleep(2)
        server.parked["a"].complete(SaslHandshakeResponse(mechanisms=["late"]))
        assert parked.is_ready
        assert parked.parts is not None
        assert b"late" in b"".join(parked.parts)  # type: ignore[arg-type]
        counters = server.pipeline.counters.apis[ApiKey.SASL_HANDSHAKE]
        assert counters.time_s_max == counters.time_s_total == pytest.approx(2)

    run(test)


def test_hold_is_the_time_in_the_loop_without_the_time_parked(caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        pipeline = server.pipeline
        now_s = [100.0]
        pipeline._monotonic_s = pipeline.health._monotonic_s = lambda: now_s[0]
        answer = server._do

        def slowly(name: str, message: Message | None) -> Any:
            now_s[0] += 0.25
            return answer(name, message)

        server._do = slowly  # type: ignore[method-assign]
        parked = pipeline.handle(info, bytearray(shake("park a", 5, "billing")[4:]))
        assert isinstance(parked, Parked)
        counters = pipeline.counters.apis[ApiKey.SASL_HANDSHAKE]
        assert counters.hold_s_max == 0.25
        now_s[0] += 50
        server.parked["a"].complete(SaslHandshakeResponse())
        assert counters.hold_s_max == 0.25
        assert counters.time_s_max == pytest.approx(50.25)
        now_s[0] += 50
        ask(server, info, shake("plain", 6, "orders"))
        assert pipeline.health.holds_of_requests == {"SaslHandshake": 2}
        parked_line, other_line = caplog.messages
        assert "held for 250 ms by SaslHandshake version 1 of " in parked_line
        assert "bytes (client id 'billing') from peer.example:5123" in parked_line
        assert "'orders'" in other_line

    run(test)


def test_hold_of_a_request_answered_from_its_frame_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        pipeline = server.pipeline
        now_s = [100.0]
        pipeline._monotonic_s = pipeline.health._monotonic_s = lambda: now_s[0]

        def answer(frame: bytearray, grants: object) -> list[bytes]:
            now_s[0] += 0.25
            return [b"reply"]

        ask(server, info, produce("a"))  # makes the route
        pipeline._fast_paths[ApiKey.PRODUCE] = cast(Any, SimpleNamespace(answer=answer))
        pipeline.handle(info, bytearray(produce("a")[4:]))
        assert pipeline.counters.apis[ApiKey.PRODUCE].hold_s_max == 0.25
        assert "held for 250 ms by Produce version 3 of " in caplog.text
        assert "bytes (client id 'tester') from peer.example:5123" in caplog.text

    run(test)


def test_every_request_is_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        pipeline = server.pipeline
        now_s = [100.0]
        pipeline._monotonic_s = lambda: now_s[0]

        def answer(frame: bytearray, grants: object) -> list[bytes]:
            now_s[0] += 0.0025
            return [b"reply"]

        ask(server, info, produce("a"))
        assert not caplog.messages, "off by default"
        pipeline._fast_paths[ApiKey.PRODUCE] = cast(Any, SimpleNamespace(answer=answer))
        PythonLoggers().set_level("ottla.requests", "DEBUG")
        ask(server, info, shake("plain", 77))
        pipeline.handle(info, bytearray(produce("a")[4:]))
        PythonLoggers().set_level("ottla.requests", None)
        ask(server, info, shake("plain", 78))

    run(test)
    frames = len(shake("plain", 77)) - 4, len(produce("a")) - 4
    general, fast = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    who = "client id 'tester') from peer.example:5123 on PLAINTEXT:"
    assert general.startswith(f"SaslHandshake version 1 (correlation id 77, {who} {frames[0]} bytes, answered with ")
    assert fast.startswith("Produce version 3 (correlation id ")
    assert fast.endswith(f"{who} {frames[1]} bytes, answered with 5 bytes after 2.500 ms")


def test_kafka_error_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def test(server: EchoServer, info: ConnectionInfo) -> None:
        reply = ask(server, info, shake("refuse", 41, "billing"))
        assert reply_to_shake(reply) == (41, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        assert server.pipeline.counters.apis[ApiKey.SASL_HANDSHAKE].errors == 1
        for fact in (
            "SaslHandshake version 1",
            "correlation id 41",
            "'billing'",
            "peer.example:5123",
            "ILLEGAL_SASL_STATE",
            "not now",
        ):
            assert fact in caplog.text

    run(test)


def test_partly_refused_request_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def answer(*codes: int) -> ProduceResponse:
        parts = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
        return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=parts)])

    def test(server: EchoServer, info: ConnectionInfo) -> None:
        route = Route(ApiKey.PRODUCE, load_handler(ApiKey.PRODUCE), 13, server.pipeline.counters.of(ApiKey.PRODUCE), True)
        context = RequestContext(server.pipeline.services, info, ApiKey.PRODUCE, 9, 41, "billing", 0.0)  # type: ignore[arg-type]  # a fake
        for response in (answer(0, 0), answer(0, ErrorCode.MESSAGE_TOO_LARGE)):
            server.pipeline.conclude(route, context, None, 100, response, None)
        assert (route.counters.requests, route.counters.errors) == (2, 1)
        (line,) = caplog.messages
        for fact in (
            "Produce version 9",
            "correlation id 41",
            "'billing'",
            "peer.example:5123",
            "MESSAGE_TOO_LARGE for orders-1",
        ):
            assert fact in line

    run(test)


def test_kafka_error_of_a_parked_request_is_answered_and_logged() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        parked = server.pipeline.handle(info, bytearray(shake("park a", 5)[4:]))
        assert isinstance(parked, Parked)
        server.parked["a"].fail(KafkaError(ErrorCode.NOT_CONTROLLER, "moved"))
        assert parked.parts is not None
        frame = b"".join(parked.parts)[4:]  # type: ignore[arg-type]
        assert reply_to_shake(frame)[1].error_code == ErrorCode.NOT_CONTROLLER

    run(test)


@pytest.mark.parametrize("what", ["raise", "unwritable"])
def test_bug_is_logged_with_traceback_and_answered_as_unknown_error(what: str, caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        reply = ask(server, info, shake(what, 3))
        assert reply_to_shake(reply)[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None

    run(test)


@pytest.mark.parametrize("what", ["close", "decode", "raise twice"])
def test_faults_that_close_the_connection(what: str, caplog: pytest.LogCaptureFixture) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        with pytest.raises(CloseConnection):
            ask(server, info, shake(what, 3, "who"))
        assert "correlation id 3, client id 'who'" in caplog.text

    run(test)


def test_parked_request_may_close_the_connection() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        parked = server.pipeline.handle(info, bytearray(shake("park a", 5)[4:]))
        assert isinstance(parked, Parked)
        server.parked["a"].fail(asyncio.CancelledError())
        assert parked.is_ready
        assert isinstance(parked.fault, CloseConnection)

    run(test)


def test_a_broken_invariant_stops_the_node() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        told: list[BaseException] = []
        server.pipeline.on_broken = told.append
        with pytest.raises(CloseConnection):
            ask(server, info, shake("broken", 3))
        assert [str(error) for error in told] == ["two and two are five"]
        assert isinstance(told[0], BrokenInvariant)

    run(test)


def raw(api_key: int, version: int, body: bytes = b"") -> bytes:
    frame = api_key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x09\0\3who" + body
    return len(frame).to_bytes(4, "big") + frame


@pytest.mark.parametrize(
    ("request_frame", "facts"),
    [
        (raw(999, 0), ["999"]),
        (raw(ApiKey.METADATA, 99, b"\0"), ["0 to 13", "Metadata version 99", "correlation id 9", "'who'"]),
        (raw(ApiKey.PRODUCE, 2), ["Produce version 2", "correlation id 9"]),
        (raw(ApiKey.LEADER_AND_ISR, 0), ["LeaderAndIsr", "removed"]),
        (raw(ApiKey.CREATE_ACLS, 2, bytes(20)), ["CreateAcls version 2", "not served"]),
        (raw(ApiKey.VOTE, 0, bytes(20)), ["Vote version 0", "not served"]),
        (raw(ApiKey.METADATA, 1, b"\x7f\xff\xff\xff"), ["Metadata version 1", "correlation id 9", "'who'"]),
        (b"\0\0\0\2\0\0", ["a frame of 2 bytes"]),
        (b"\0\0\0\0", ["a frame of 0 bytes"]),
    ],
)
def test_unserved_requests_close_the_connection(
    request_frame: bytes, facts: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        with pytest.raises(CloseConnection):
            server.pipeline.handle(info, bytearray(request_frame[4:]))
        (record,) = caplog.records
        for fact in [*facts, "peer.example:5123 on PLAINTEXT"]:
            assert fact in record.getMessage()
        assert server.pipeline.counters.connections.faults == 1

    run(test)


@pytest.mark.parametrize("is_asked_for", [False, True])
def test_an_unstable_version_is_served_only_with_its_setting(is_asked_for: bool) -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        server.pipeline._load = lambda key, on_controller: load_handler(ApiKey.INIT_PRODUCER_ID)
        services = cast(Any, server.pipeline.services)
        services.settings = SimpleNamespace(current=SimpleNamespace(transaction_two_phase_commit_enable=is_asked_for))
        services.producer_ids = SimpleNamespace(take=lambda: 77)
        body = b"\0" + b"\0" + b"\0\0\0\1" + b"\xff" * 10 + bytes(3)
        frame = bytearray(raw(ApiKey.INIT_PRODUCER_ID, 6, body)[4:])
        if is_asked_for:
            parts = server.pipeline.handle(info, frame)
            assert isinstance(parts, list)
            assert (77).to_bytes(8) in b"".join(parts)  # type: ignore[arg-type]
        else:
            with pytest.raises(CloseConnection, match="0 to 5"):
                server.pipeline.handle(info, frame)

    run(test)


@pytest.mark.parametrize("version", [5, 99, -1, 32767])
def test_api_versions_in_a_newer_version_is_answered_in_version_0(version: int, caplog: pytest.LogCaptureFixture) -> None:
    """Newer clients do so on every connection: log lines about it would use up the limit of their host."""
    caplog.set_level(logging.INFO)

    def test(server: EchoServer, info: ConnectionInfo) -> None:
        request = raw(ApiKey.API_VERSIONS, version, b"\0\1\1\0")
        assert ask(server, info, request) == b"\0\0\0\x09" + b"\0\x23" + b"\0\0\0\1" + b"\0\x12\0\0\0\4"
        counters = server.pipeline.counters.of(ApiKey.API_VERSIONS)
        assert (counters.requests, counters.errors) == (1, 0)
        assert not caplog.messages

    run(test)


def test_controller_listener_serves_only_its_own_apis() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        frame = ask(server, info, hello(1))
        keys = [each.api_key for each in decode_all(ApiVersionsResponse, 3, frame, 4).api_keys]
        assert ApiKey.CREATE_TOPICS in keys
        assert ApiKey.PRODUCE not in keys
        with pytest.raises(CloseConnection):
            ask(server, info, produce("a"))

    run(test, is_controller=True)


def test_every_listed_module_is_there() -> None:
    listed = [(key, False) for key in ON_BROKER] + [(key, True) for key in ON_CONTROLLER]
    for key, on_controller in listed:
        module = load_handler(key, on_controller)
        assert module is not None
        assert callable(module.handle)
        assert callable(module.refuse)
        assert ("controller" if on_controller else "broker") in APIS[key].listeners
    assert load_handler(ApiKey.SHARE_FETCH) is None
    assert load_handler(ApiKey.BROKER_HEARTBEAT) is None
    assert load_handler(ApiKey.PRODUCE, True) is None


# Interception


def intercepting(server: EchoServer, **how: Any) -> list[tuple[RequestContext, Message]]:
    seen: list[tuple[RequestContext, Message]] = []

    def intercept(context: RequestContext, request: Message) -> Interception | None:
        seen.append((context, request))
        return Interception(**how) if how else None

    server.pipeline.intercept = intercept
    return seen


async def later(parked: object) -> bytes | CloseConnection | None:
    """What becomes of a request that was parked."""
    assert isinstance(parked, Parked)
    while not parked.is_ready:
        await asyncio.sleep(0.1)
    if parked.fault is not None:
        return parked.fault
    return None if parked.parts is None else b"".join(parked.parts)[4:]  # type: ignore[arg-type]


def test_request_is_handled_if_the_interceptor_returns_none() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        seen = intercepting(server)
        assert b"plain" in ask(server, info, shake("plain"))
        assert [(context.api_key, type(request).__name__) for context, request in seen] == [(17, "SaslHandshakeRequest")]

    run(test)


def test_a_request_is_delayed() -> None:
    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        intercepting(server, delay_s=3)
        parked = server.pipeline.handle(info, bytearray(produce("plain")[4:]))
        await asyncio.sleep(2.9)
        assert server.asked == []
        assert isinstance(parked, Parked)
        assert not parked.lets_pass
        assert b"plain" in (await later(parked))  # type: ignore[operator]
        assert server.asked == ["plain"]

    run(test)


def test_a_delayed_request_is_abandoned_with_its_connection() -> None:
    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        intercepting(server, delay_s=3)
        parked = server.pipeline.handle(info, bytearray(produce("plain")[4:]))
        assert isinstance(parked, Parked)
        parked.abandon()
        await asyncio.sleep(10)
        assert server.asked == []

    run(test)


def test_answers_are_replaced() -> None:
    def test(server: EchoServer, info: ConnectionInfo) -> None:
        intercepting(server, answer=SaslHandshakeResponse(mechanisms=["other"]))
        assert b"other" in ask(server, info, shake("plain"))
        intercepting(server, answer=KafkaError(ErrorCode.NOT_CONTROLLER, "on purpose"))
        assert reply_to_shake(ask(server, info, shake("plain")))[1].error_code == ErrorCode.NOT_CONTROLLER
        assert server.asked == []
        intercepting(server, rewrite=lambda message: SaslHandshakeResponse(mechanisms=[*message.mechanisms, "more"]))
        assert reply_to_shake(ask(server, info, shake("plain")))[1].mechanisms == ["plain", "more"]

    run(test)


def test_replies_get_lost() -> None:
    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        intercepting(server, is_lost=True)
        with pytest.raises(CloseConnection):
            ask(server, info, shake("lost"))
        intercepting(server, is_lost=True, is_handled=False, delay_s=1)
        parked = server.pipeline.handle(info, bytearray(shake("never")[4:]))
        assert isinstance(await later(parked), CloseConnection)
        assert server.asked == ["lost"]

    run(test)


def test_interception_of_requests_that_park_or_fail_by_themselves() -> None:
    async def test(server: EchoServer, info: ConnectionInfo) -> None:
        intercepting(server, delay_s=1)
        parked = server.pipeline.handle(info, bytearray(shake("park a")[4:]))
        await asyncio.sleep(2)
        server.parked["a"].complete(SaslHandshakeResponse(mechanisms=["a"]))
        assert reply_to_shake(await later(parked))[1].mechanisms == ["a"]  # type: ignore[arg-type]
        parked = server.pipeline.handle(info, bytearray(shake("refuse")[4:]))
        assert reply_to_shake(await later(parked))[1].error_code == ErrorCode.ILLEGAL_SASL_STATE  # type: ignore[arg-type]

    run(test)
