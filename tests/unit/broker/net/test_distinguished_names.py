"""Subjects of certificates as text. The names are what Java 17 makes of the same bytes (`PrincipalOracle.java`)."""

import ssl

import pytest
from tests.support.servers.certificates import Authority

from ottla.broker.net.distinguished_names import name_of, subject_of
from ottla.errors import DecodeError


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (
            ("3043310b300906035504061302444531123010060355040a0c0941636d652c20496e63310e300c060355040b0c054b61666b613110300e06"
            "035504030c0762726f6b657231"),
            "CN=broker1,OU=Kafka,O=Acme\\, Inc,C=DE",
        ),
        ("30163114301206092a864886f70d0109010c0568656c6c6f", "1.2.840.113549.1.9.1=#0c0568656c6c6f"),
        ("3019310b3009060355040313026123310a30080603550405130135", "2.5.4.5=#130135,CN=a\\#"),
        ("301a310c300a06035504030c03202361310a30080603550405130135", "2.5.4.5=#130135,CN=\\ \\#a"),
        ("301a310c300a06035504031603613d62310a30080603550405130135", "2.5.4.5=#130135,CN=a\\=b"),
        ("301b310d300b06035504031e0400230061310a30080603550405130135", "2.5.4.5=#130135,CN=\\00\\#\\00a"),
        ("3000", ""),
    ],
)  # fmt: skip
def test_names_are_those_of_java(subject: str, name: str) -> None:
    assert name_of(bytes.fromhex(subject)) == name


def test_subject_of_a_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    issued = Authority(tmp_path_factory.mktemp("ca")).issue("a", subject="/DC=com/DC=example/UID=u1/CN=ä b")
    der = ssl.PEM_cert_to_DER_cert(issued.certificate.read_text())
    assert name_of(subject_of(der)) == "CN=ä b,UID=u1,DC=example,DC=com"


def test_damaged_bytes_are_no_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    der = ssl.PEM_cert_to_DER_cert(Authority(tmp_path_factory.mktemp("ca")).certificate.read_text())
    subject = subject_of(der)
    for length in range(len(der)):
        with pytest.raises(DecodeError):
            subject_of(der[:length])
    for length in range(len(subject)):
        with pytest.raises(DecodeError):
            name_of(subject[:length])
