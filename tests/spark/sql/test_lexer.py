"""Tokens and statements: quotes, comments and semicolons."""

from __future__ import annotations

import pytest

from ottla.spark.sql.lexer import Unfinished, is_complete, split_statements, tokenize


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT a, 1.5 FROM `my-topic`", ["SELECT", "a", ",", "1.5", "FROM", "my-topic"]),
        ("'it''s' \"a\"\"b\" `c``d`", ["it's", 'a"b', "c`d"]),
        (r"'it\'s' '\\' 'a\nb'", ["it's", "\\", r"a\nb"]),
        ("a -- b ; c\n+ /* d /* nested */ ; */ e", ["a", "+", "e"]),
        ("'--' '/*' \"*/\"", ["--", "/*", "*/"]),
        ("naïve_1 x>=2e-3", ["naïve_1", "x", ">", "=", "2e-3"]),
        ("", []),
    ],
)
def test_tokens_have_no_blanks_comments_and_quotes(sql: str, values: list[str]) -> None:
    assert [token.value for token in tokenize(sql)] == values


def test_tokens_know_where_they_are() -> None:
    sql = "SELECT  'a;b'  FROM x"
    assert [sql[token.start : token.end] for token in tokenize(sql)] == ["SELECT", "'a;b'", "FROM", "x"]


def test_statements_are_cut_at_semicolons_outside_of_quotes_and_comments() -> None:
    cuts = split_statements("SELECT ';' ; -- first;\n\n/* ; */ SET 'a'='b;c';;\n SELECT 2 -- end;")
    assert [(cut.text, cut.line) for cut in cuts] == [("SELECT ';'", 1), ("SET 'a'='b;c'", 3), ("SELECT 2", 4)]


@pytest.mark.parametrize("sql", ["", "  -- nothing", "SELECT 1;", "SELECT 1; SELECT 2 ; ", "SELECT ';';"])
def test_text_with_a_semicolon_at_its_end_is_complete(sql: str) -> None:
    assert is_complete(sql)


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1; SELECT", "SELECT ';", "SELECT 1 /* ;", "SELECT `a;"])
def test_text_that_waits_for_more_is_not_complete(sql: str) -> None:
    assert not is_complete(sql)


@pytest.mark.parametrize(("sql", "words"), [("a\n'b", "the quote ' in line 2"), ("a /* b", "the comment in line 1")])
def test_quote_or_comment_without_end_is_named_with_its_line(sql: str, words: str) -> None:
    with pytest.raises(Unfinished, match=words):
        split_statements(sql)
