"""`ottla transactions force-terminate`: InitProducerId for a transactional id: fences its producer, aborts its transaction."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator
from ottla.cli.common.options import cluster_options, yes_option
from ottla.cli.common.output import confirm, is_for_people, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.transactions.asking import describe_transactions, id_refusal
from ottla.cli.transactions.choosing import complete_transactional_ids
from ottla.errors import KafkaError
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

EXAMPLES = """\b
Examples:
  ottla transactions force-terminate payments
  ottla transactions forceTerminateTransaction --transactionalId payments    Kafka's spelling
"""


@click.command("force-terminate", epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[ID]", shell_complete=complete_transactional_ids)
@click.option(
    "--transactional-id",
    "--transactionalId",
    "flagged",
    metavar="ID",
    shell_complete=complete_transactional_ids,
    help="Kafka's spelling of ID.",
)
@yes_option
@cluster_options()
def force_terminate(settings: ClientSettings, name: str | None, flagged: str | None, yes: bool) -> None:
    """Abort the open transaction of a transactional id, and fence its producer. Asks for confirmation on a terminal."""
    if (name is None) == (flagged is None):
        raise click.UsageError("name one transactional id, for example: ottla transactions force-terminate payments")
    transactional_id = name or flagged or ""
    confirm(f"Abort the open transaction of {transactional_id}, and fence its producer?", yes)
    with_cluster(settings, lambda cluster: _terminate(cluster, transactional_id))
    if is_for_people():
        say(f"{transactional_id} has no open transaction any more.")


async def _terminate(cluster: Cluster, transactional_id: str) -> None:
    # InitProducerId would create an unknown id. Check first, so that a mistyped id is an error.
    view = (await describe_transactions(cluster, [transactional_id]))[transactional_id]
    if isinstance(view, KafkaError):
        raise view

    async def ask(broker_id: int, wanted: list[str]) -> dict[str, KafkaError | None]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=cluster.settings.request_timeout_ms
        )
        response: InitProducerIdResponse = await (await cluster.link_to(broker_id)).request(request)
        return {transactional_id: id_refusal(transactional_id, response.error_code) if response.error_code else None}

    outcome = (await by_coordinator(cluster, CoordinatorKind.TRANSACTION, [transactional_id], ask))[transactional_id]
    if isinstance(outcome, KafkaError):
        raise outcome
