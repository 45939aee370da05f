"""`ottla storage version-mapping` and `feature-dependencies`: feature levels of releases."""

from __future__ import annotations

import click

from ottla.cli.common.output import say
from ottla.metadata import features


def parse_features(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Parse `name=level` values; the callback of --feature."""
    return tuple(_parse_feature(text) for text in texts)


def _parse_feature(text: str) -> tuple[str, int]:
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals or not name or not level.isascii() or not level.lstrip("-").isdigit() or len(level) > 5:
        raise click.BadParameter(f"{text!r} should be a feature and its level, such as group.version=1")
    return name, int(level)


# In Kafka's order.
_FEATURES = (
    features.KRAFT_VERSION,
    features.TRANSACTION_VERSION,
    features.GROUP_VERSION,
    features.ELIGIBLE_LEADER_REPLICAS_VERSION,
    features.SHARE_VERSION,
    features.STREAMS_VERSION,
)


@click.command("version-mapping")
@click.option("--release-version", "-r", help="A release, such as 4.1 or 4.3-IV0. The default is the newest.")
def version_mapping(release_version: str | None) -> None:
    """Show the feature levels that a new cluster of a release starts with."""
    shown = release_version or features.metadata_version_name(features.METADATA_VERSION_MAX)
    level = features.metadata_version_of(shown)
    if level is None:
        names = ", ".join(version.name for version in features.METADATA_VERSIONS.values())
        raise click.ClickException(f"there is no release version {shown!r}: use one of {names}")
    levels = features.default_levels(level)
    say(f"{features.METADATA_VERSION}={level} ({shown})")
    for name in _FEATURES:
        say(f"{name}={levels.get(name, 0)}")


@click.command("feature-dependencies")
@click.option(
    "--feature",
    "-f",
    "wanted",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    callback=parse_features,
    help="A feature and a level of it. Repeatable.",
)
def feature_dependencies(wanted: tuple[tuple[str, int], ...]) -> None:
    """Show which other features a feature level requires."""
    for name, level in wanted:
        _check(name, level)
        shown = f"{name}={level}"
        if name == features.METADATA_VERSION:
            shown += f" ({features.metadata_version_name(level)})"
        needs = features.DEPENDENCIES.get((name, level), {})
        if not needs:
            say(f"{shown} has no dependencies.")
            continue
        say(f"{shown} requires:")
        for needed, needed_level in needs.items():
            also = f" ({features.metadata_version_name(needed_level)})" if needed == features.METADATA_VERSION else ""
            say(f"    {needed}={needed_level}{also}")


def _check(name: str, level: int) -> None:
    if name in features.UNSERVED_FEATURES:
        low, high = 0, features.UNSERVED_FEATURES[name]
    elif name in features.SUPPORTED_FEATURES:
        low, high = features.SUPPORTED_FEATURES[name]
    else:
        raise click.ClickException(f"there is no feature {name}: the features are {', '.join(sorted(_FEATURES))}")
    if not low <= level <= high:
        raise click.ClickException(f"{name} has no level {level}: it can be {low} to {high}")
