"""The `elect-leaders` verb: preferred and unclean elections of partition leaders. Takes the flags of kafka-leader-election.

An unclean election can lose acknowledged records: the command says which, and asks first. Without a terminal it needs --yes,
in either spelling: --unclean, or Kafka's --election-type UNCLEAN.
"""

from __future__ import annotations

import click

from ottla.cli.common.completion import complete_topics, complete_words
from ottla.cli.common.options import cluster_options, json_option, plain_option, refused, wide_option, yes_option
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.elect_leaders.asking import ask_first
from ottla.cli.elect_leaders.electing import FAILED, PREFERRED, UNCLEAN, elect
from ottla.cli.elect_leaders.naming import named_partitions
from ottla.cli.elect_leaders.showing import print_outcomes

EXAMPLES = """\b
Examples:
  ottla elect-leaders --all                       every partition back to its preferred leader, the first of its replicas
  ottla elect-leaders orders                      all partitions of a topic
  ottla elect-leaders orders:0 orders:2
  ottla elect-leaders orders:0 --unclean          a leader out of sync, if no other replica will come back: loses records
  ottla elect-leaders --path-to-json-file partitions.json
\b
The file has Kafka's form:
  {"partitions": [{"topic": "orders", "partition": 0}]}
"""


@click.command("elect-leaders", epilog=EXAMPLES)
@click.argument("places", nargs=-1, metavar="[TOPIC[:PARTITION]]...", shell_complete=complete_topics)
@click.option("--topic", metavar="TOPIC", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--partition", "numbers", type=click.IntRange(0), multiple=True, help="With --topic: this partition. Repeatable.")
@click.option("--all", "--all-topic-partitions", "is_all", is_flag=True, help="All partitions that need an election.")
@click.option("--path-to-json-file", metavar="FILE", help="Partitions in Kafka's form; - reads standard input.")
@click.option("--unclean", is_flag=True, help="Where there is no leader, elect a replica that is out of sync: loses records.")
@click.option(
    "--election-type",
    type=click.Choice([PREFERRED, UNCLEAN], case_sensitive=False),
    shell_complete=complete_words(PREFERRED, UNCLEAN),
    help=f"Kafka's spelling of --unclean.  [default: {PREFERRED}]",
)
@refused(
    "--list",
    "elect-leaders lists nothing: `ottla topics describe` shows leaders, with --unavailable-partitions those that need one",
    takes_value=False,
)
@yes_option
@json_option
@plain_option
@wide_option
@cluster_options(old_config_flag="admin")
def elect_leaders(
    settings: ClientSettings,
    places: tuple[str, ...],
    topic: str | None,
    numbers: tuple[int, ...],
    is_all: bool,
    path_to_json_file: str | None,
    unclean: bool,
    election_type: str | None,
    yes: bool,
    as_json: bool,
    plain: bool,
) -> int:
    """Elect leaders of partitions: the preferred ones, or with --unclean any replica.

    The preferred leader is the first of a partition's replicas. It is elected if it is in sync. An unclean election is only for
    partitions without a leader: what was acknowledged while the new leader was out of sync is lost for good. Without a terminal
    it needs --yes. The exit code is 1 if an election failed.
    """
    if unclean and election_type == PREFERRED:
        raise click.UsageError("--unclean and --election-type preferred exclude each other: choose one")
    named = named_partitions(places, topic, numbers, is_all, path_to_json_file)
    kind = UNCLEAN if unclean or election_type == UNCLEAN else PREFERRED
    if kind == UNCLEAN:
        ask_first(settings, named, yes)
    outcomes = with_cluster(settings, lambda cluster: elect(cluster, kind, named))
    print_outcomes(kind, outcomes, as_json, plain)
    return 1 if any(each.result == FAILED for each in outcomes) else 0
