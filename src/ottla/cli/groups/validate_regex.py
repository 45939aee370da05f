"""`ottla groups validate-regex`: checks whether brokers accept a regular expression as a subscription."""

from __future__ import annotations

import click

from ottla.cli.common.output import say
from ottla.errors import OttlaError


@click.command("validate-regex")
@click.argument("regex")
@click.option("-b", "--bootstrap-server", hidden=True, expose_value=False)
def validate_regex(regex: str) -> int:
    """Check REGEX as brokers do when consumers of the new protocol subscribe with it: the syntax is RE2. Asks no broker."""
    try:
        import re2
    except ImportError:
        raise OttlaError("this needs the package google-re2: pip install google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options=options)
    except re2.error as error:
        said = error.args[0]
        say(f"The regular expression `{regex}` is invalid: {said.decode() if isinstance(said, bytes) else said}.")
        return 1
    say(f"The regular expression `{regex}` is valid.")
    return 0
