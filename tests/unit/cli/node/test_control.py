"""The control socket of `ottla up`."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import pytest

from ottla.cli.node.control import NAME, ControlServer, ask
from ottla.errors import OttlaError


async def answer(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield {"say": f"{request['do']} began"}
    if request["do"] == "fail":
        raise click.ClickException("it cannot be")
    if request["do"] == "hang":
        await asyncio.Event().wait()
    yield {"done": 7}


@pytest.mark.parametrize("deep", [False, True])
def test_lines_and_errors_reach_the_other_side(tmp_path: Path, deep: bool) -> None:
    data = tmp_path / ("d" * 120) if deep else tmp_path
    data.mkdir(exist_ok=True)

    async def scenario() -> None:
        def asked(action: str) -> list[dict[str, Any]]:
            return list(ask(data, {"do": action}))

        for _ in range(2):  # the second takes the place of the socket that the first left
            server = ControlServer(data, answer)
            await server.open()
            assert (data / NAME).stat().st_mode & 0o777 == 0o600
            assert await asyncio.to_thread(asked, "work") == [{"say": "work began"}, {"done": 7}]
        with pytest.raises(OttlaError, match="it cannot be"):
            await asyncio.to_thread(asked, "fail")
        hanging = asyncio.ensure_future(asyncio.to_thread(asked, "hang"))
        while not server._busy.locked():
            await asyncio.sleep(0.001)
        await server.close()
        with pytest.raises(OttlaError, match="has ended meanwhile"):
            await hanging
        assert os.listdir(data) == []

    asyncio.run(scenario())
    with pytest.raises(OttlaError, match=r"no `ottla up` is ready on .* name its folder with --data"):
        list(ask(data, {"do": "status"}))
