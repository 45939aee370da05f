"""`ottla certs`: a certificate authority of one's own, certificates for nodes and clients, and what is in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.common.spelling import Commands
from ottla.env.real.certificates import CA_DAYS, CA_KEY_FILE, DAYS, Authority, CertificateError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

F = TypeVar("F", bound=Callable[..., Any])

EPILOG = """\b
Examples:
  ottla certs ca                                     an authority, in ./ottla-certs
  ottla certs node kafka-1 --host kafka-1.lan --host 10.0.0.5
  ottla certs client alice                           for ssl.client.auth=required; the principal is User:CN=alice
  ottla certs show ottla-certs/kafka-1.pem           subject, names, and until when it is valid

`ottla up --secure` makes all of this for a local node. docs/security.md secures a cluster with it.
"""


def _folder_option(command: F) -> F:
    option = click.option(
        "--folder",
        default="ottla-certs",
        show_default=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="The folder of the authority; new files are written there.",
    )
    return option(command)


def _days_option(default: int) -> Callable[[F], F]:
    return click.option(
        "--days", default=default, show_default=True, type=click.IntRange(1, 36_500), help="For how long it is valid."
    )


@click.group(cls=Commands, epilog=EPILOG)
def certs() -> None:
    """Make certificates for TLS: an authority, and certificates that it signs."""


@certs.command("ca")
@click.argument("folder", default="ottla-certs", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", default="Ottla CA", show_default=True, help="The authority's name in its certificate.")
@_days_option(CA_DAYS)
def ca_command(folder: Path, name: str, days: int) -> None:
    """Make a certificate authority in FOLDER."""
    authority = Authority.create(folder, name, days)
    say(f"Wrote {authority.ca_file}: give it to clients and nodes, which trust certificates that it signs.")
    say(f"Wrote {folder / CA_KEY_FILE}: keep it secret. Whoever has it can be any node and any user.")


@certs.command()
@click.argument("name")
@click.option("--host", "hosts", multiple=True, required=True, help="A host name or address that clients use. Repeatable.")
@_folder_option
@_days_option(DAYS)
def node(name: str, hosts: Sequence[str], folder: Path, days: int) -> None:
    """Make the certificate of a node called NAME, which is a server and, towards other nodes, a client."""
    _tell(Authority.load(folder), name, hosts, days)


@certs.command()
@click.argument("name")
@_folder_option
@_days_option(DAYS)
def client(name: str, folder: Path, days: int) -> None:
    """Make the certificate of a client called NAME. Brokers know it as User:CN=NAME."""
    _tell(Authority.load(folder), name, (), days)


def _tell(authority: Authority, name: str, hosts: Sequence[str], days: int) -> None:
    file = authority.issue(name, hosts, days)
    say(f"Wrote {file}, key and certificate of CN={name}. Keep it secret. In the properties of its owner:")
    say("  ssl.keystore.type=PEM")
    say(f"  ssl.keystore.location={file.resolve()}")
    say("  ssl.truststore.type=PEM")
    say(f"  ssl.truststore.location={authority.ca_file.resolve()}")


@certs.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> int:
    """Show the certificates in a PEM FILE. Exit code 1 if one of them is not valid now."""
    found = [_facts(each) for each in _certificates(file)]
    if as_json:
        print_json(found)
    for each in () if as_json else found:
        names = f", for {', '.join(each['names'])}" if each["names"] else ""
        say(f"{each['subject']}{names}")
        say(f"  issued by {each['issuer']}, valid from {each['not_before']} to {each['not_after']} ({each['state']})")
    return 0 if all(each["is_valid"] for each in found) else 1


def _certificates(file: Path) -> Sequence[Certificate]:
    try:
        from cryptography.x509 import load_pem_x509_certificates
    except ImportError:
        raise CertificateError("certificates are read with the package cryptography: pip install cryptography") from None
    try:
        return load_pem_x509_certificates(file.read_bytes())
    except ValueError as damage:
        raise CertificateError(f"{file} holds no certificate in PEM form: {damage}") from None


def _facts(certificate: Certificate) -> dict[str, Any]:
    from cryptography import x509

    try:
        names = [str(each.value) for each in certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value]
    except x509.ExtensionNotFound:
        names = []
    now, begin, end = datetime.now(UTC), certificate.not_valid_before_utc, certificate.not_valid_after_utc
    days = (end - now).days
    state = "not valid yet" if now < begin else "expired" if now > end else f"{days} day{'s' * (days != 1)} left"
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": names,
        "not_before": begin.isoformat(),
        "not_after": end.isoformat(),
        "is_valid": begin <= now <= end,
        "state": state,
    }
