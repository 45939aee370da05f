"""What `ottla up --secure` keeps in the data folder: an authority, the nodes' certificate, and how the admin logs in.

    DATA/security/ca.pem               the authority; clients trust it
    DATA/security/ca-key.pem           its key
    DATA/security/node.pem             key and certificate of the nodes
    DATA/security/client.properties    for clients and commands: the user admin, with a password made at random
    DATA/node-N                        the log directories

A folder that was made secure stays so, with and without the flag: nobody opens it by forgetting a word.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Final

import click

from ottla.broker.secure_settings import ADMIN, NODE_NAME, NodeSecurity, client_properties
from ottla.cli.node.up import SECURITY_FOLDER
from ottla.config.jaas import parse_jaas
from ottla.config.java_properties import parse_properties
from ottla.env.real.certificates import CA_FILE, Authority, is_good_for, write_secret
from ottla.log.names import META_PROPERTIES

NODE_FILE: Final = "node.pem"
CLIENT_FILE: Final = "client.properties"
PASSWORD_BYTES: Final = 18


def client_file(data: Path) -> Path:
    return data / SECURITY_FOLDER / CLIENT_FILE


def node_security(data: Path, host: str) -> NodeSecurity:
    """The security of the nodes in a folder; what is missing is made. `host` is where clients reach them."""
    folder = data / SECURITY_FOLDER
    if not folder.exists():
        for plain in (data / META_PROPERTIES, data / "node-1" / META_PROPERTIES):
            if plain.exists():
                raise click.ClickException(
                    f"{data} holds a node that is not secured: name a new folder with --data. docs/security.md secures a "
                    "running cluster step by step"
                )
    authority = Authority.load(folder) if (folder / CA_FILE).exists() else Authority.create(folder)
    hosts = list(dict.fromkeys((host, "localhost", "127.0.0.1", "::1", socket.gethostname())))
    node_file = folder / NODE_FILE
    if not is_good_for(node_file, host):
        node_file.unlink(missing_ok=True)
        authority.issue(NODE_NAME, hosts, out=node_file)
    file = client_file(data)
    password = _password_in(file) if file.exists() else secrets.token_urlsafe(PASSWORD_BYTES)
    security = NodeSecurity(password, ca_file=str(authority.ca_file), node_file=str(node_file))
    if not file.exists():
        properties = client_properties(security)
        write_secret(file, "".join(f"{name}={value}\n" for name, value in properties.items()))
    return security


def first_user(security: NodeSecurity) -> str:
    """The user admin in the notation of --add-scram."""
    return f"{security.mechanism}=[name={ADMIN},password={security.password}]"


def _password_in(file: Path) -> str:
    properties = parse_properties(file.read_bytes())
    try:
        return parse_jaas(properties["sasl.jaas.config"]).options["password"]
    except (KeyError, ValueError):
        raise click.ClickException(
            f"{file} does not say the password of {ADMIN}: put back its sasl.jaas.config; `ottla up --secure` wrote it"
        ) from None
