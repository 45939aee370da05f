"""`ottla reassign verify`: how far a plan is. When nothing moves any more, the throttles are removed, as Kafka's tool does."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.reassign.asking import status_of
from ottla.cli.reassign.options import plan_argument, plan_path, preserve_option
from ottla.cli.reassign.plan import read_plan
from ottla.cli.reassign.showing import show_status, waiting_lines
from ottla.cli.reassign.moving import remove_throttles

EXAMPLES = """\b
Examples:
  ottla reassign verify plan.json
  until ottla reassign verify plan.json; do sleep 10; done
"""


@click.command("verify", epilog=EXAMPLES)
@plan_argument
@preserve_option
@json_option
@plain_option
@wide_option
@cluster_options()
def verify(
    settings: ClientSettings, file: str | None, kafkas_file: str | None, preserve_throttles: bool, as_json: bool, plain: bool
) -> int:
    """Show how far a plan is.

    When no partition of the cluster moves any more, the throttles that `execute` has set are removed, of all brokers and of the
    plan's topics. The exit code is 0 if every partition is where the plan wants it, else 1.
    """
    path = plan_path(file, kafkas_file, "verify")
    plan = read_plan(path)
    status = with_cluster(settings, lambda cluster: status_of(cluster, plan))
    show_status(status, as_json, plain)
    for line in waiting_lines(status, path).values():
        warn(line)
    if not status.is_moving and not preserve_throttles:
        cleared = with_cluster(settings, lambda cluster: remove_throttles(cluster, plan))
        if not as_json:
            for line in cleared:
                say(line)
    return 0 if status.is_done else 1
