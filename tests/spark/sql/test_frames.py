"""Declarations as DataFrames: the formats that the tests of `running` do not use."""

from __future__ import annotations

import io
from typing import Any

from ottla import Producer

SCHEMA = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}'


def test_numbers_avro_raw_and_headers_are_read(sql: Any, topic: str, tmp_path: Any) -> None:
    import json

    import fastavro

    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(json.loads(SCHEMA)), {"id": 7, "name": "ann"})
    with Producer(sql.broker.bootstrap_servers) as producer:
        producer.send(topic, made.getvalue(), key=(5).to_bytes(8, "big"), headers=[("h", b"1")]).result(30)
    (tmp_path / "o.avsc").write_text(SCHEMA)
    sql(f"CREATE STREAM a WITH (topic='{topic}', format='avro', schema='{tmp_path}/o.avsc')")
    sql(f"CREATE STREAM r WITH (topic='{topic}', format='raw')")
    sql(f"CREATE STREAM k (id BIGINT KEY, v BINARY) WITH (topic='{topic}', format='bytes', key_format='int64')")
    rows = sql(
        "SELECT a.id, a.name, hex(r.key), size(r.headers), k.id, a._headers[0].key "
        "FROM a, r, k WHERE a._offset = r.offset AND a._partition = r.partition"
    )
    assert rows == [(7, "ann", "0000000000000005", 1, 5, "h")]
