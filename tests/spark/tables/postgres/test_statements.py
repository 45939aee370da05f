"""The SQL that moves staged rows. What it does is tested in test_sink.py."""

from ottla.spark.tables.postgres.sink import Move, listed


def test_an_append_keeps_the_order_of_rows() -> None:
    assert listed(["a", 'b"']) == '"a", "b"""'
    assert Move("shop.t", ("a",)).statement(["s1", "s2"]) == (
        'INSERT INTO "shop"."t" ("a") SELECT "a" FROM (SELECT "a", 0 AS _ottla_task, _ottla_row FROM "s1" UNION ALL '
        'SELECT "a", 1 AS _ottla_task, _ottla_row FROM "s2") AS staged ORDER BY _ottla_task, _ottla_row'
    )


def test_a_table_of_keys_alone_has_nothing_to_update() -> None:
    assert Move("t", ("a",), keys=("a",)).statement(["s"]).endswith('ON CONFLICT ("a") DO NOTHING')


def test_with_an_order_only_newer_rows_replace() -> None:
    statement = Move("t", ("a", "n"), keys=("a",), order_by="n").statement(["s"])
    assert statement.endswith('SET "n" = EXCLUDED."n" WHERE "t"."n" IS NULL OR EXCLUDED."n" >= "t"."n"')
    assert 'ORDER BY "a", "n" DESC NULLS LAST, _ottla_task DESC, _ottla_row DESC' in statement
