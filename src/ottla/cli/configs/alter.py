"""`ottla configs alter`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, parse_pairs, read_properties
from ottla.cli.configs.entities import complete_settings, entity_arguments, find_entity
from ottla.client.admin.configs import ResourceKey, alter_configs
from ottla.config.values import parse_duration_ms

EXAMPLES = """\b
Examples:
  ottla configs alter topic orders --set retention.ms=1d --unset segment.ms
  ottla configs alter topic orders --set cleanup.policy=compact,delete
  ottla configs alter broker 1 --set log.cleaner.threads=2
  ottla configs alter topic orders --add-config 'retention.ms=1,cleanup.policy=[compact,delete]'
"""

_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?=[^\]]*(?:\[|$))")


@click.command("alter", epilog=EXAMPLES)
@entity_arguments
@click.option(
    "--set",
    "to_set",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_settings,
    help="Set a setting; times may be written 30s, 1h, 7d. Repeatable.",
)
@click.option(
    "--unset",
    "to_unset",
    multiple=True,
    metavar="KEY",
    shell_complete=complete_settings,
    help="Reset a setting to its default. Repeatable.",
)
@click.option(
    "--add-config", metavar="K=V,K=[V,V]", shell_complete=complete_settings, help="Kafka's spelling of --set, several at once."
)
@click.option("--add-config-file", metavar="FILE", help="The same from a properties file.")
@click.option(
    "--delete-config", metavar="K,K", shell_complete=complete_settings, help="Kafka's spelling of --unset, several at once."
)
@click.option("--validate-only", is_flag=True, help="Check the change without making it.")
@json_option
@cluster_options()
def alter(
    settings: ClientSettings,
    to_set: tuple[str, ...],
    to_unset: tuple[str, ...],
    add_config: str | None,
    add_config_file: str | None,
    delete_config: str | None,
    validate_only: bool,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Set and unset settings of topics, brokers, loggers and groups, all in one change.

    TYPE is topic, broker, broker-defaults, broker-logger, group or client-metrics.
    """
    entity = find_entity(arguments)
    if entity.name is None:
        raise click.UsageError(f"name the {entity.kind} whose settings to change")
    if add_config is not None and add_config_file is not None:
        raise click.UsageError("give --add-config or --add-config-file, not both")
    added = parse_pairs(to_set, "--set")
    if add_config_file is not None:
        added |= read_properties(add_config_file)
    if add_config is not None:
        added |= parse_grouped_pairs(add_config)
    added = in_milliseconds(added)
    removed = [*to_unset, *(key.strip() for key in (delete_config or "").split(",") if key.strip())]
    both = sorted(set(added) & set(removed))
    if both:
        raise click.UsageError(f"{', '.join(both)} cannot be both set and unset")
    if not added and not removed:
        raise click.UsageError("say what to change: --set KEY=VALUE or --unset KEY (Kafka: --add-config, --delete-config)")
    resource = entity.resource
    changes: dict[ResourceKey, dict[str, str | None]] = {resource: {**added, **dict.fromkeys(removed)}}
    with_cluster(settings, lambda cluster: alter_configs(cluster, changes, validate_only=validate_only)).raise_first()
    if as_json:
        print_json({"type": resource.type_name, "name": resource.name, "set": added, "unset": removed})
    elif validate_only:
        say(f"The settings of {resource} could be changed.")
    elif resource.name:
        say(f"Completed updating config for {entity.kind} {resource.name}.")
    else:
        say("Completed updating default config for brokers in the cluster.")


def in_milliseconds(added: Mapping[str, str]) -> dict[str, str]:
    """The values as brokers read them: a duration such as 1h or 7d, for a setting in milliseconds, becomes its number."""
    found = {}
    for name, value in added.items():
        duration_ms = parse_duration_ms(value.strip()) if name.endswith(".ms") else None
        found[name] = value if duration_ms is None else str(duration_ms)
    return found


def parse_grouped_pairs(text: str) -> dict[str, str]:
    """Parse Kafka's `k1=v1,k2=[v1,v2]`: a value with commas is in brackets."""
    pairs = parse_pairs((part.strip() for part in _COMMA_OUTSIDE_BRACKETS.split(text)), "--add-config")
    return {key: value.strip().removeprefix("[").removesuffix("]") for key, value in pairs.items()}
