"""From a certificate's subject to a principal: what Kafka makes of the same rules is in test_principal_rules_with_apache.py."""

import pytest

from ottla.config.principal_rules import PrincipalRules

DN = "CN=kafka.Example,OU=Ops,O=Acme\\, Inc,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", DN),
        ("", None),
        (",,DEFAULT", DN),
        ("RULE:^CN=(.*?),.*$/$1/", "kafka.Example"),
        ("RULE:^CN=(.*?),.*$/$1/L", "kafka.example"),
        (" RULE:^CN=(.*?),.*$/$1/U , DEFAULT", "KAFKA.EXAMPLE"),
        ("RULE:CN=(.*?)/$1/", DN.removeprefix("CN=")),  # the whole name must match, and non-greedy groups take all of it then
        ("RULE:CN=kafka/x/", None),
        ("RULE:CN=kafka/x/,DEFAULT", DN),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2\\/$1@$3/", "Ops/kafka.Example@$3"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$21/", "Ops1"),
        ("RULE:^CN=(?<host>.*?),.*$/${host}/", "kafka.Example"),
        ("RULE:(.*)/x/", "xx"),
        ("RULE:^CN=a\\/b$/x/\nDEFAULT", DN),
    ],
)
def test_first_rule_that_matches_the_whole_name_decides(rules: str, name: str | None) -> None:
    assert PrincipalRules.parse(rules).name(DN) == name


@pytest.mark.parametrize("rules", ["default", "RULE:a/b", "RULE:a/b/X", "RULE:(/b/", "DEFAULT RULE:a/b/"])
def test_other_texts_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"is no rule: write|is no regular expression"):
        PrincipalRules.parse(rules)


def test_equal_texts_are_equal_rules() -> None:
    assert PrincipalRules.parse("DEFAULT") == PrincipalRules()
    assert PrincipalRules.parse("RULE:a/b/") != PrincipalRules()
