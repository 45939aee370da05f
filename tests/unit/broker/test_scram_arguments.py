"""`--add-scram` arguments. tests/compat compares the records with Apache's own storage tool."""

import base64
import hashlib
import hmac

import pytest

from ottla.broker.scram_arguments import BadScramArgument, parse_scram


def no_salt() -> bytes:
    raise AssertionError("a salt was given")


def test_the_example_of_rfc_7677() -> None:
    """Section 3: user `user`, password `pencil`; the keys must make and accept the signatures given there."""
    record = parse_scram("SCRAM-SHA-256=[name=user,password=pencil,salt=W22ZaJ0SNY7soEsUEjb6gQ==]", no_salt)
    assert (record.name, record.mechanism, record.iterations) == ("user", 1, 4096)
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(record.stored_key, message, "sha256")
    client_key = bytes(one ^ two for one, two in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key
    assert hmac.digest(record.server_key, message, "sha256") == base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_salt_is_generated_if_none_is_given() -> None:
    one = parse_scram("SCRAM-SHA-512=[name=a,password=p,iterations=5000]", lambda: b"one")
    two = parse_scram("SCRAM-SHA-512=[name=a,password=p,iterations=5000]", lambda: b"two")
    assert (one.salt, two.salt, one.mechanism, one.iterations) == (b"one", b"two", 2, 5000)
    assert one.stored_key != two.stored_key
    assert len(one.stored_key) == len(one.server_key) == 64


def test_no_error_repeats_a_password() -> None:
    for argument in (
        "SCRAM-SHA-256=[name=a,password=hunter2,x=1]",
        "SCRAM-SHA-256=name=a,password=hunter2",
        "x=[password=hunter2]",
    ):
        with pytest.raises(BadScramArgument) as refused:
            parse_scram(argument, no_salt)
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("SCRAM-SHA-256", "begins with a mechanism"),
        ("SCRAM-MD5=[name=a,password=b]", "begins with a mechanism"),
        ("SCRAM-SHA-256=name=a,password=b", "brackets"),
        ("SCRAM-SHA-256=[name=a]", "needs a password"),
        ("SCRAM-SHA-256=[password=b]", "whose login"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=YCE=]", "needs the salt"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=4095]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=b,iterations=16385]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=b,salt=?]", "must be Base64"),
        ("SCRAM-SHA-256=[name=a,password=b,more=c]", "no 'more'"),
    ],
)
def test_invalid_arguments_are_refused(argument: str, said: str) -> None:
    with pytest.raises(BadScramArgument, match=said):
        parse_scram(argument, lambda: b"salt")
