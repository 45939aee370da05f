"""Parsing and comparing schemas in worker processes, each task with a bound on time and memory.

Schemas come from strangers, and a small one can cost much: deep nesting, unions of unions, regular expressions. A worker that
takes too long is killed and replaced. Tasks and answers are lines of JSON over the worker's standard input and output.

`python -m ottla.registry.work` is a worker.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import OrderedDict
from typing import Any

from ottla.registry import errors
from ottla.schemas.languages import Imported, InvalidSchema, Parsed, Source, differences, parse

TASK_S = 5.0
"""How long parsing or comparing may take."""
MEMORY_BYTES = 1 << 30
LINE_BYTES = 64 * 1024 * 1024
WORKERS = 2
CACHED = 2_000
WAITING_MAX = 200
"""Tasks that may wait for a worker; more are refused."""


class SchemaWork:
    """A pool of workers, started when first used, and what they found."""

    def __init__(self) -> None:
        self._free: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        for _ in range(WORKERS):
            self._free.put_nowait(None)
        self._running: set[asyncio.subprocess.Process] = set()
        self._parsed: OrderedDict[Any, Parsed] = OrderedDict()
        self._compared: OrderedDict[Any, list[str]] = OrderedDict()
        self._waiting = 0

    async def parse(self, source: Source) -> Parsed:
        """The texts to store. Raises a `RegistryError` that says what is wrong with the schema."""
        if source not in self._parsed:
            _remember(self._parsed, source, Parsed(*await self._do(["parse", source])))
        return self._parsed[source]

    async def differences(self, reader: Source, writer: Source, policy: str) -> list[str]:
        """Why data of `writer` cannot be read with `reader`."""
        key = (reader, writer, policy)
        if key not in self._compared:
            _remember(self._compared, key, await self._do(["differences", reader, writer, policy]))
        return self._compared[key]

    async def serialized(self, source: Source) -> str:
        """A Protobuf schema as a FileDescriptorProto in base64."""
        found: str = await self._do(["serialized", source])
        return found

    async def _do(self, task: list[Any]) -> Any:
        if self._waiting >= WAITING_MAX:
            raise errors.RegistryError(429, 42901, "too many schemas wait to be parsed: try again in a moment")
        self._waiting += 1
        try:
            process = await self._free.get()
        finally:
            self._waiting -= 1
        try:
            if process is None or process.returncode is not None:
                process = await self._start()
            found = await self._ask(process, task)
        except BaseException:
            if process is not None:
                self._end(process)
            process = None
            raise
        finally:
            self._free.put_nowait(process)
        if "invalid" in found:
            raise errors.invalid_schema(found["invalid"])
        return found["answer"]

    async def _start(self) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "ottla.registry.work")
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=LINE_BYTES)
        self._running.add(process)
        return process

    async def _ask(self, process: asyncio.subprocess.Process, task: list[Any]) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(TASK_S):
                process.stdin.write(json.dumps(task).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
        except TimeoutError:
            raise errors.schema_too_large(f"it takes more than {TASK_S:g} s to read or to compare") from None
        except (OSError, ValueError):
            line = b""
        if not line:
            raise errors.schema_too_large("it takes more memory to read or to compare than the registry has for that")
        return json.loads(line)

    def _end(self, process: asyncio.subprocess.Process) -> None:
        self._running.discard(process)
        if process.returncode is None:
            process.kill()

    async def close(self) -> None:
        """End the workers."""
        for process in list(self._running):
            self._end(process)
            await process.wait()


def _remember(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    if len(cache) > CACHED:
        cache.popitem(last=False)


def _source(given: list[Any]) -> Source:
    kind, text, imports = given
    return Source(kind, text, tuple(Imported(*each) for each in imports))


def _answer(task: list[Any]) -> Any:
    try:
        if task[0] == "parse":
            return {"answer": parse(_source(task[1]))}
        if task[0] == "serialized":
            from ottla.schemas.languages.protobuf import serialized

            return {"answer": serialized(_source(task[1]))}
        return {"answer": differences(_source(task[1]), _source(task[2]), task[3])}
    except InvalidSchema as problem:
        return {"invalid": str(problem)}
    except RecursionError:
        return {"invalid": "it is nested too deeply"}


def serve() -> None:
    """Do the tasks that come, until the parent closes the pipe."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else may write to the pipe
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
