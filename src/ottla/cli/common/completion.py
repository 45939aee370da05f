"""Names for shell completion, asked from the cluster. Offers none, and prints nothing, if it does not answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import click

from ottla.cli.common.connection import open_cluster
from ottla.cli.common.output import escape
from ottla.cli.common.settings import build_settings

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

LIMIT_MS = 300


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics whose names begin with `incomplete`; none if the cluster does not answer within `LIMIT_MS`."""
    from ottla.client.admin.topic_descriptions import list_topics

    return complete_from_cluster(ctx, incomplete, lambda cluster: list_topics(cluster, include_internal=True))


def complete_words(*words: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A completer that offers `words`."""
    return lambda ctx, param, incomplete: [word for word in words if word.startswith(incomplete)]


def complete_from_cluster(ctx: click.Context, incomplete: str, ask: Callable[[Cluster], Awaitable[Iterable[str]]]) -> list[str]:
    """The names that `ask` returns and that begin with `incomplete`; none if the cluster does not answer within `LIMIT_MS`."""

    async def names() -> list[str]:
        cluster = open_cluster(build_settings(ctx.params.get("bootstrap_server"), {}))
        try:
            async with asyncio.timeout(LIMIT_MS / 1000):
                return list(await ask(cluster))
        finally:
            cluster.close()

    try:
        return [name for name in asyncio.run(names()) if name.startswith(incomplete) and escape(name) == name]
    except Exception:  # an error message would garble the line being typed
        return []
