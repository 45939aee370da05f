"""Certificates for tests, made with the `openssl` command: an authority, certificates that it signs, files in PEM and PKCS12.

authority = Authority(folder)
server = authority.issue("localhost", ["DNS:localhost", "IP:127.0.0.1"])
server.certificate, server.key      # paths
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "correct-horse"
EXTENSIONS = """\
basicConstraints=CA:FALSE
keyUsage=digitalSignature
authorityKeyIdentifier=keyid
extendedKeyUsage=serverAuth,clientAuth
"""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path

    def encrypted_key(self, password: str = PASSWORD) -> Path:
        """The key as an encrypted PKCS8 file."""
        path = self.key.with_suffix(".encrypted.key")
        openssl("pkcs8", "-topk8", "-in", self.key, "-out", path, "-passout", f"pass:{password}")
        return path

    def keystore(self, password: str = PASSWORD) -> Path:
        """Certificate and key as a PKCS12 file, for Java."""
        path = self.key.with_suffix(".p12")
        openssl(
            "pkcs12", "-export", "-in", self.certificate, "-inkey", self.key, "-name", "node", "-out", path, "-passout",
            f"pass:{password}",
        )  # fmt: skip
        return path

    def single_file(self) -> Path:
        """Key and certificate in one PEM file, as Kafka's PEM keystores are."""
        path = self.key.with_suffix(".both.pem")
        path.write_text(self.key.read_text() + self.certificate.read_text())
        return path


class Authority:
    """A certificate authority with its own key. `certificate` is what clients have to trust."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = folder / "authority.pem"
        self._key = folder / "authority.key"
        openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj",
            f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self._key, "-out", self.certificate,
        )  # fmt: skip

    @classmethod
    def again(cls, authority: "Authority", folder: Path) -> "Authority":
        """The same authority, whose certificates go to another folder: names that it has issued can be issued again."""
        made = cls.__new__(cls)
        folder.mkdir(parents=True, exist_ok=True)
        made.folder, made.certificate, made._key = folder, authority.certificate, authority._key
        return made

    def issue(
        self, name: str, alternative_names: Sequence[str] = (), *, is_expired: bool = False, subject: str | None = None
    ) -> Issued:
        """A certificate for `name`, with alternative names such as `DNS:localhost`. An expired one ended in the year 2001.

        `subject` is its whole subject, if that is more than the common name: `/C=DE/O=Acme/CN=name`, the broadest part first.
        """
        stem = f"{name}-expired" if is_expired else name
        request, extensions = self.folder / f"{stem}.csr", self.folder / f"{stem}.ext"
        issued = Issued(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            subject or f"/CN={name}", "-utf8", "-keyout", issued.key, "-out", request,
        )  # fmt: skip
        names = f"subjectAltName={','.join(alternative_names)}\n" if alternative_names else ""
        if is_expired:
            self._sign_for_the_past(request, issued.certificate, EXTENSIONS + names)
            return issued
        extensions.write_text(EXTENSIONS + names)
        openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "30",
            "-extfile", extensions, "-out", issued.certificate,
        )  # fmt: skip
        return issued

    def _sign_for_the_past(self, request: Path, certificate: Path, extensions: str) -> None:
        """Only `openssl ca` can date a certificate back."""
        config = self.folder / "past.cnf"
        (self.folder / "index.txt").write_text("")
        config.write_text(
            f"[ca]\ndefault_ca=past\n[past]\nnew_certs_dir={self.folder}\ndatabase={self.folder}/index.txt\nrand_serial=yes\n"
            f"default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n[extensions]\n{extensions}"
        )
        openssl(
            "ca", "-batch", "-notext", "-config", config, "-extensions", "extensions", "-cert", self.certificate, "-keyfile",
            self._key, "-startdate", "20000101000000Z", "-enddate", "20010101000000Z", "-in", request, "-out", certificate,
        )  # fmt: skip


def openssl(*arguments: object) -> None:
    """Run the `openssl` command. Its output is in the error if it fails."""
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {arguments[0]} ended with {done.returncode}: {done.stderr}"
