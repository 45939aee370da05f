"""Names and texts as SQL."""

from ottla.spark.tables.postgres.connection import literal, quoted, quoted_table


def test_names_and_texts_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert quoted_table("shop.orders") == '"shop"."orders"'
    assert literal("it's") == "'it''s'"
