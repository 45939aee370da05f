"""Names for shell completion: from the cluster, if it answers at once. Says nothing and fails never."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import click

from ottla.cli.common.escaping import escape

if TYPE_CHECKING:
    from ottla.cli.common.cluster import Cluster

LIMIT_MS = 300


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The topics whose names begin with what has been typed; none where the cluster cannot be asked in time."""
    return complete_from_cluster(ctx, incomplete, lambda cluster: cluster.topics())


def complete_words(*words: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """One of these."""
    return lambda ctx, param, incomplete: [word for word in words if word.startswith(incomplete)]


def complete_from_cluster(ctx: click.Context, incomplete: str, ask: Callable[[Cluster], Awaitable[Iterable[str]]]) -> list[str]:
    """What the cluster tells that begins with what has been typed; nothing where it cannot be asked in time."""
    from ottla.cli.common.cluster import Cluster
    from ottla.cli.common.running import make_network
    from ottla.cli.common.settings import build_settings

    async def names() -> list[str]:
        cluster = Cluster(build_settings(ctx.params.get("bootstrap_server"), {}), make_network())
        try:
            async with asyncio.timeout(LIMIT_MS / 1000):
                return list(await ask(cluster))
        finally:
            cluster.close()

    try:
        return [name for name in asyncio.run(names()) if name.startswith(incomplete) and escape(name) == name]
    except Exception:  # completion must never disturb the line being typed
        return []
