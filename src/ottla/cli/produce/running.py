"""The loop of `ottla produce`: reads input, gives its records to a `Producer`, and waits until all of them are stored.

Reading and the first failure of a record are awaited together, so that a refused record ends the command also while no input
comes. However it ends, what was read before gets a few seconds to be stored.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.produce.lines import Bytes, Input, Reader
from ottla.cli.produce.options import ProduceOptions
from ottla.cli.produce.sending import Ledger, Progress, Sending, Topics
from ottla.client.cluster import Cluster
from ottla.client.producer.asynchronous import Producer
from ottla.errors import OttlaError

GRACE_S = 5.0
"""After Ctrl-C or a failure, how long the records that were read before may take to be stored."""
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(OttlaError):
    """A signal has ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


async def produce(
    cluster: Cluster, options: ProduceOptions, reader: Reader, source: Input, ledger: Ledger, prompt: str = ""
) -> None:
    """Send all records of `source`, and return when all are stored. `ledger` has what is stored, also after a failure."""
    topics = Topics(cluster, options)
    if options.topic is not None:
        await topics.find(options.topic)
    producer: Producer[Bytes, Bytes] = Producer(config=options.client, world=cluster.world, **options.login)
    producer.watch_batches(ledger.finished)
    progress = Progress(ledger, source, has_prompt=bool(prompt))
    sending = Sending(producer, options, reader, ledger, topics)
    ticking = asyncio.create_task(progress.run())
    try:
        with client_logs_shown(show=progress.client_says), ended_by_signals():
            try:
                await _until_failure(sending.run(source, prompt), ledger)
            except asyncio.CancelledError:
                progress.interrupted(GRACE_S)
                raise
            finally:
                progress.is_ending = True
                await producer.close(GRACE_S)
    finally:
        ticking.cancel()
        progress.clear()
        source.close()


async def _until_failure(work: Awaitable[None], ledger: Ledger) -> None:
    """Await `work`, or the first failure of a record, which is raised."""
    running = asyncio.ensure_future(work)
    failing = asyncio.create_task(ledger.failed.wait())
    try:
        await asyncio.wait((running, failing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        failing.cancel()
        if not running.done():
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    if ledger.failure is not None:
        raise ledger.failure
    await running


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Cancel the running task on signals that end processes, and raise `Terminated` then."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    handled = []
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # as nohup asks for
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread, or a system without them
            loop.add_signal_handler(number, end, number)
            handled.append(number)
    try:
        yield
    except asyncio.CancelledError:
        if not received:
            raise
        task.uncancel()
        raise Terminated(received[0]) from None
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
