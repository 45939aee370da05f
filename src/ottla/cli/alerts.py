"""`ottla alerts`: watches a cluster by rules, and tells a webhook: Alertmanager, or whatever takes Alertmanager's messages."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.alerts import (
    FORMS,
    Alarms,
    Alert,
    AlertSettings,
    Watcher,
    parse_settings,
    payloads,
    prometheus_rules,
    rules_yaml,
)
from ottla.client.cluster import Cluster
from ottla.config.values import parse_duration_ms
from ottla.errors import OttlaError

POST_S = 10.0
REFRESHES = 4
"""Alertmanager takes an alert for ended after so many looks without news of it."""

EXAMPLES = """\b
Examples:
  ottla alerts check                              what is wrong now; exit code 1 if anything is
  ottla alerts run --webhook http://localhost:9093/api/v2/alerts --form alertmanager
  ottla alerts rules > alerts.yaml                the default rules, to begin with
  ottla alerts run --rules alerts.yaml
  ottla alerts rules --prometheus > ottla-rules.yaml
"""
_HERE = "ottla.cli.alerts"
ACTIONS = {
    "check": (_HERE, "check", "Show which rules are true now."),
    "run": (_HERE, "run", "Watch, and tell a webhook, until Ctrl-C."),
    "rules": (_HERE, "rules", "Print the rules: as YAML, or as a file for Prometheus."),
}
rules_option = click.option(
    "--rules", "file", type=click.Path(path_type=Path), metavar="FILE", help="A YAML file with rules.  [default: sensible ones]"
)


@click.command("alerts", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def alerts() -> None:
    """Watch a cluster by rules: partitions, controllers, disks, lag of consumer groups. Works with any Kafka cluster.

    `ottla alerts run` sends an alert when a rule was true for its time, again after a while, and once more when it is over.
    """


def read_settings(file: Path | None) -> AlertSettings:
    """The settings of a file; the default ones without a file."""
    if file is None:
        return AlertSettings()
    try:
        import yaml
    except ImportError:
        raise OttlaError("a file of rules needs the package pyyaml: pip install 'ottla[console]'") from None
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} is not YAML: {error}") from None

    def duration_s(text: str) -> float | None:
        found = parse_duration_ms(text)
        return None if found is None else found / 1000

    return parse_settings(content, str(file), duration_s)


@click.command("check")
@rules_option
@json_option
@cluster_options()
def check(settings: ClientSettings, file: Path | None, as_json: bool) -> int:
    """Show which rules are true now, whatever the time that they must be true for. The exit code is 1 if any is.

    The status of groups needs several looks: it is watched by `ottla alerts run`.
    """
    given = read_settings(file)
    at_once = given._replace(rules=tuple(each._replace(for_s=0.0) for each in given.rules))

    async def work(cluster: Cluster) -> tuple[list[Alert], list[str]]:
        watcher = Watcher(cluster, at_once.rules)
        found = Alarms(at_once).see(await watcher.look(), cluster.world.clock.now_ms() / 1000)
        return found, watcher.failures

    found, failures = with_cluster(settings, work)
    for each in failures:
        warn(f"not all could be looked at: {each}")
    if as_json:
        print_json(payloads("webhook", found))
    for alert in [] if as_json else found:
        say(_line(alert))
    if not found and not failures and not as_json:
        say("no rule is true")
    return 1 if found or failures else 0


@click.command("run")
@rules_option
@click.option("--webhook", metavar="URL", help="Where alerts are sent: wins over the file's.")
@click.option("--form", type=click.Choice(FORMS), help="What the receiver takes: webhooks of Alertmanager, or its own API.")
@json_option
@cluster_options()
def run(settings: ClientSettings, file: Path | None, webhook: str | None, form: str | None, as_json: bool) -> None:
    """Watch until Ctrl-C. Without a webhook, alerts are printed."""
    given = read_settings(file)
    chosen = given._replace(webhook=webhook or given.webhook, form=form or given.form)
    with_cluster(settings, lambda cluster: _run(cluster, chosen, as_json), is_patient=True)


async def _run(cluster: Cluster, settings: AlertSettings, as_json: bool) -> None:
    alarms, watcher = Alarms(settings), Watcher(cluster, settings.rules)
    while True:
        series = await watcher.look()
        for each in watcher.failures:
            warn(f"not all could be looked at: {each}")
        now_s = cluster.world.clock.now_ms() / 1000
        due = alarms.see(series, now_s)
        if settings.form == "alertmanager":
            # It repeats by itself, and takes what it does not hear of any more for ended: every look sends it all alerts.
            ended = [each for each in due if each.ends_s is not None]
            due = [*ended, *alarms.firing()]
        if due:
            if settings.webhook is None or await _send(settings, due, now_s):
                alarms.sent(due, now_s)
            if settings.webhook is None:
                _show(due, as_json)
        await asyncio.sleep(settings.every_s)


def _show(alerts: Sequence[Alert], as_json: bool) -> None:
    if as_json:
        print_json(payloads("webhook", alerts))
    for each in [] if as_json else alerts:
        say(_line(each))


def _line(alert: Alert) -> str:
    labels, annotations = dict(alert.labels), dict(alert.annotations)
    state = "resolved" if alert.ends_s is not None else labels["severity"]
    return f"{state}: {labels['alertname']}: {annotations['description']}"


async def _send(settings: AlertSettings, alerts: Sequence[Alert], now_s: float) -> bool:
    """Whether the receiver took it; if not, it is sent again after the next look."""
    assert settings.webhook is not None
    body = payloads(settings.form, alerts, until_s=now_s + max(60.0, REFRESHES * settings.every_s))
    try:
        await asyncio.to_thread(partial(_post, settings.webhook, body))
    except OSError as error:
        warn(f"{settings.webhook} did not take {len(alerts)} alerts, which are sent again in {settings.every_s:g} s: {error}")
        return False
    return True


def _post(url: str, body: Any) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=POST_S) as response:
        response.read()


@click.command("rules")
@rules_option
@click.option("--prometheus", is_flag=True, help="As a file for Prometheus, over the metrics of Ottla's nodes.")
def rules(file: Path | None, prometheus: bool) -> None:
    """Print the rules."""
    given = read_settings(file)
    for line in (prometheus_rules(given) if prometheus else rules_yaml(given)).splitlines():
        say(line)
