"""What the Admin's functions share: errors of items, changes at the controller, requests in a limited version.

The functions in this folder take a `Cluster` (`client/cluster.py`), which locates nodes and repeats requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connections import kafka_error
from ottla.errors import KafkaError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.link import LinkError
from ottla.wire.base import EncodeError, Message

T = TypeVar("T")
K = TypeVar("K")

_AGAIN = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})
"""Errors of single items after which the controller has done nothing, and the same change may succeed later."""


def refused(code: int, about: str, text: str | None = None) -> KafkaError:
    """The error of one item: with the broker's own text where it gave one."""
    return exception_of(code, f"{about}: {text or error_meaning(code)} ({error_name(code)})")


def group_refused(code: int, group_id: str, about: str, text: str | None = None) -> KafkaError:
    """The error of a group: if it does not exist, the text says that and not what was asked of it."""
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        return exception_of(code, f"group {group_id} does not exist ({error_name(code)})")
    return refused(code, about, text)


def refused_or(code: int, about: str, text: str | None, value: T) -> T | KafkaError:
    """`value` if `code` is no error, else the error."""
    return refused(code, about, text) if code else value


def raise_refused(code: int, about: str, text: str | None = None) -> None:
    """Raise the error of a response that failed as a whole."""
    if code:
        raise refused(code, about, text)


async def refuse_older(cluster: Cluster, broker_id: int, key: int, version: int, wanted: str) -> None:
    """Raise an error that says what cannot be listed if a broker does not serve this version of an API."""
    link = await cluster.link_to(broker_id)
    if not link.versions.has(key, version):
        raise UnsupportedVersionError(f"{link.address} is too old to list {wanted}: leave that out, or ask newer brokers")


async def to_controller(
    cluster: Cluster, items: Iterable[K], ask: Callable[[list[K]], Awaitable[Mapping[K, T | KafkaError]]]
) -> dict[K, T | KafkaError]:
    """What `ask` answers about each of `items`. Items that the controller did not take up are asked about again."""
    done: dict[K, T | KafkaError] = {}
    pending = list(items)

    async def attempt() -> None:
        nonlocal pending
        done.update(await ask(pending))
        again = {item: error for item in pending if isinstance(error := done.get(item), KafkaError) and error.code in _AGAIN}
        pending = list(again)
        for error in again.values():
            if error.code == ErrorCode.NOT_CONTROLLER:
                await cluster.metadata([])
            raise error

    try:
        await cluster.retrying(attempt)
    except KafkaError as error:
        if not any(done.get(item) is error for item in pending):
            raise  # not the error of an item: the request itself failed
    return done


async def ask_controller_whole(cluster: Cluster, message: Message, about: str) -> Any:
    """The controller's response, which has one error code. Raises that error, after more attempts if it is retriable."""

    async def attempt() -> Any:
        response = await cluster.ask_controller(message, _code_of)
        raise_refused(response.error_code, about, getattr(response, "error_message", None))
        return response

    return await cluster.retrying(attempt)


def _code_of(response: Any) -> int:
    return int(response.error_code)


async def ask_broker_until(cluster: Cluster, broker_id: int, message: Message, version_max: int) -> Any:
    """One broker's response to `message` in a version of at most `version_max`."""
    link = await cluster.link_to(broker_id)
    try:
        return await link.request(message, version=min(link.versions.newest(message.KEY), version_max))
    except (LinkError, EncodeError) as failure:
        raise kafka_error(failure) from None
