"""Certificates' subjects and the rules that make principals of them: what Java and Apache Kafka make of the same."""

import re

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.broker.net.distinguished_names import name_of
from ottla.config.principal_rules import PrincipalRules

UTF8, PRINTABLE, T61, IA5, UNIVERSAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1C, 0x1E
CN, SERIAL_NUMBER = "2.5.4.3", "2.5.4.5"
TEXTS = (
    " a", "a ", "  a b  ", "#a", "a#", "a=b", 'q"x\\y', "<a>;+b", "\r a \r", "é ü 漢", "\0a\0", "a\nb", "\n", " ", "  ", "#",
    " #a", "a,b+c", "\t", "\x7f", "😀", "%", "\\ ", "",
)  # fmt: skip
TYPES = (
    "1.2.840.113549.1.9.1", "2.5.4.4", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "2.5.4.12",
    "2.5.4.17", "2.5.4.46", "2.999.1234567.5", "0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.3",
    "0.9.2342.19200300.100.1.25",
)  # fmt: skip
RULES = (
    "DEFAULT", "", " DEFAULT ", ",,DEFAULT", "default", "foo", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "DEFAULT RULE:a/b/",
    "RULE:^CN=(.*?),.*$/$1/", "RULE:^CN=(.*?),.*$/$1/U", "RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "RULE:CN=(.*?)/$1/",
    "RULE:(.*)/x/", "RULE:(.*)/$1x/", "RULE:.*/$1/", "RULE:.*/$0/", "RULE:^CN=(.*?),OU=(.*?),.*$/$21/",
    "RULE:^CN=(.*?),OU=(.*?),.*$/$2\\/$1@$3/", "RULE:^CN=(?<host>.*?),.*$/${host}/", "RULE:^CN=(?<h1>.*?),.*$/a\\$1b\\\\c/",
    "RULE:^CN=a\\/b$/x/\nDEFAULT", "RULE:a/b/,,DEFAULT", "RULE:^CN=(.*),OU=(.*),O=(.*),C=(.*)$/$10$0/",
    "RULE:^CN=(.*),OU=(.*),O=(.*),C=(.*)$/$01/", "RULE:^CN=(.*),(x)?OU.*$/[$2]/", "RULE:^CN=(.*),.*$/$/",
    "RULE:^CN=(.*),.*$/a$b/", "RULE:^CN=(.*?),.*$/$1/LU", "RULE:^CN=(.*?),.*$/$1/Lfoo", "RULE:.*/\\/", "RULE:.*/\\\\/",
    "RULE:CN=broker1,.*/a,b/", "RULE:.*/  sp /L ,DEFAULT", "RULE:.*/x/L DEFAULT", "RULE://x/", "RULE:.*//",
    "RULE:[^,]++.*/ß/U", "RULE:.*/İ/L", "RULE:(?i)cn=.*/i/", "RULE:.*/$12/",
)  # fmt: skip


def der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    assert len(content) < 128
    return bytes((tag, len(content))) + content


def object_id(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    out = b""
    for number in (40 * first + second, *rest):
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.insert(0, number & 0x7F | 0x80)
        out += bytes(septets)
    return der(0x06, out)


def attribute(type_: str, text: str, tag: int = UTF8) -> bytes:
    encoding = {BMP: "utf-16-be", UNIVERSAL: "utf-32-be", T61: "latin-1"}.get(tag, "utf-8")
    return der(0x30, object_id(type_), der(tag, text.encode(encoding, "replace")))


def subject(*parts: bytes) -> bytes:
    return der(0x30, *(der(0x31, part) for part in parts))


BROKER = subject(
    attribute("2.5.4.6", "DE", PRINTABLE),
    attribute("2.5.4.10", "Acme, Inc"),
    attribute("2.5.4.11", "Kafka"),
    attribute(CN, "broker1"),
)


def unescaped(text: str) -> str:
    units = re.sub(r"%([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def ours(rules: str, name: str) -> str:
    try:
        found = PrincipalRules.parse(rules).name(name)
    except ValueError:
        return "!"
    return "!" if found is None else found


@pytest.mark.kafka
def test_names_and_principals_are_apaches(apache_kafka: ApacheKafka) -> None:
    several = attribute(CN, "y") + attribute("0.9.2342.19200300.100.1.1", "u1") + attribute("2.5.4.7", "z")
    subjects = [b"\x30\x00", subject(several, attribute(CN, "x"))]
    tags = (UTF8, PRINTABLE, T61, IA5, UNIVERSAL, BMP)
    subjects += [subject(attribute(CN, text, tag), attribute(SERIAL_NUMBER, "5")) for text in TEXTS for tag in tags]
    subjects += [subject(attribute(type_, "hello", tag)) for type_ in TYPES for tag in (UTF8, IA5)]
    asked = [(each, "DEFAULT") for each in subjects] + [(BROKER, rules) for rules in RULES]
    lines = "".join(f"{each.hex()}\t{rules}".replace("\n", "\\n") + "\n" for each, rules in asked)
    answers = apache_kafka.run_java("PrincipalOracle.java", stdin=lines).stdout.splitlines()
    theirs = [tuple(unescaped(part) for part in line.split("\t")) for line in answers]
    found = [(name_of(each), ours(rules, name_of(each))) for each, rules in asked]
    expected = [(name, "!" if principal.startswith("! ") else principal) for name, principal in theirs]
    different = [
        (asked[at], mine, other) for at, (mine, other) in enumerate(zip(found, expected, strict=True)) if mine != other
    ]
    assert different == []
