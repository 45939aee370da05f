"""Makes a certificate authority and certificates: for `ottla up --secure`, `ottla certs` and brokers in users' tests.

    ca.pem        the authority's certificate: clients and nodes trust it
    ca-key.pem    its private key, to make more certificates
    NAME.pem      a private key and its certificate, in one file, for ssl.keystore.location

Keys are ECDSA P-256, PKCS#8 without a password, in files of mode 600: Java, OpenSSL and Python read them. Needs the package
`cryptography` (`pip install ottla[security]`), which is imported when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CA_FILE: Final = "ca.pem"
CA_KEY_FILE: Final = "ca-key.pem"
CA_DAYS: Final = 3650
DAYS: Final = 825
"""How long a certificate is valid. Some clients accept none that is valid for longer."""
RENEWED_BEFORE: Final = timedelta(days=30)
CLOCK_SKEW: Final = timedelta(hours=1)
"""So much earlier than now a certificate begins: clocks of other machines may be behind."""


class CertificateError(OttlaError):
    """No certificate can be made: the text says why, and what to do."""


class Authority:
    """A certificate authority, and the folder with its files."""

    def __init__(self, folder: Path, certificate: x509.Certificate, key: EllipticCurvePrivateKey) -> None:
        self.folder = folder
        self._certificate = certificate
        self._key = key

    @property
    def ca_file(self) -> Path:
        return self.folder / CA_FILE

    @classmethod
    def create(cls, folder: Path, name: str = "Ottla CA", days: int = CA_DAYS) -> Authority:
        """A new authority, with its files in `folder`. Files that exist are never replaced."""
        ec, x509 = _cryptography()
        for existing in (folder / CA_FILE, folder / CA_KEY_FILE):
            if existing.exists():
                raise CertificateError(f"{existing} exists already: name another folder, or move it away")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(x509, name)
        builder = _builder(x509, subject, subject, key, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(x509, is_authority=True), critical=True)
        certificate = builder.sign(key, _hash())
        folder.parent.mkdir(0o750, parents=True, exist_ok=True)
        folder.mkdir(0o700, exist_ok=True)
        write_secret(folder / CA_KEY_FILE, _key_text(key))
        (folder / CA_FILE).write_text(_certificate_text(certificate), encoding="ascii")
        return cls(folder, certificate, key)

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """The authority whose files are in `folder`."""
        _, x509 = _cryptography()
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            certificate = x509.load_pem_x509_certificate((folder / CA_FILE).read_bytes())
            key: Any = load_pem_private_key((folder / CA_KEY_FILE).read_bytes(), None)
        except FileNotFoundError as missing:
            raise CertificateError(
                f"{missing.filename} is not there: `ottla certs ca {folder}` makes an authority in that folder"
            ) from None
        except (OSError, ValueError, TypeError) as damage:
            raise CertificateError(f"the authority in {folder} cannot be read: {damage}") from None
        return cls(folder, certificate, key)

    def issue(self, name: str, hosts: Sequence[str] = (), days: int = DAYS, out: Path | None = None) -> Path:
        """Make a certificate with the subject CN=`name`; returns its file, with the key in it.

        With `hosts`, names and addresses, it is good for a node, which is a server and a client; without, for a client alone.
        """
        ec, x509 = _cryptography()
        from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

        if out is None and ("/" in name or name.startswith(".")):
            raise CertificateError(f"{name!r} cannot be the name of a file: choose a name without slashes")
        file = out or self.folder / f"{name}.pem"
        if file.exists():
            raise CertificateError(f"{file} exists already: choose another name, or move it away")
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(x509, _subject(x509, name), self._certificate.subject, key, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(x509, is_authority=False), critical=True)
        usages = [Usage.SERVER_AUTH, Usage.CLIENT_AUTH] if hosts else [Usage.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        # Python 3.13 and newer refuse a certificate without it, where a context is made by ssl.create_default_context.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if hosts:
            names = [_alternative_name(x509, host) for host in dict.fromkeys(hosts)]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, _hash())
        write_secret(file, _key_text(key) + _certificate_text(certificate) + _certificate_text(self._certificate))
        return file


def is_good_for(file: Path, host: str) -> bool:
    """Whether a node's certificate is there, names `host`, and is valid for another month at least."""
    _, x509 = _cryptography()
    try:
        certificate = x509.load_pem_x509_certificates(file.read_bytes())[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    is_named = _alternative_name(x509, host) in names
    return is_named and certificate.not_valid_after_utc - datetime.now(UTC) > RENEWED_BEFORE


def write_secret(file: Path, text: str) -> None:
    """Write a new file that only its owner may read."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise CertificateError("certificates are made with the package cryptography: pip install cryptography") from None
    return ec, x509


def _hash() -> Any:
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


def _subject(x509: Any, name: str) -> Any:
    try:
        return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
    except ValueError as mistake:
        raise CertificateError(f"{name!r} cannot be the name in a certificate: {mistake}") from None


def _alternative_name(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode("ascii"))
    except (UnicodeError, ValueError):
        raise CertificateError(f"{host!r} is neither a host name nor an address") from None


def _builder(x509: Any, subject: Any, issuer: Any, key: Any, days: int) -> Any:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(x509: Any, is_authority: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


def _certificate_text(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")
