"""The console's SQL page, on Spark."""

import json
import time

import pytest
from tests.support.servers.console_server import RunningConsole, running_console
from tests.support.servers.kafka_server import HANG_S

from ottla import Producer
from ottla.console.masking import Masking, Rule
from ottla.testing import Broker


def until(console: RunningConsole, path: str, state: str) -> dict[str, object]:
    deadline_s = time.monotonic() + HANG_S
    while (found := console.api(path))["state"] != state:
        assert found["state"] == "runs", found
        assert time.monotonic() < deadline_s, found
        time.sleep(0.2)
    return dict(found)


def test_sql_needs_its_flag_and_no_masking() -> None:
    with Broker() as broker:
        with running_console(broker.bootstrap_servers) as console:
            assert "--sql" in console.get("/sql").text
            assert console.post("/sql", {"text": "SHOW TOPICS"}).status == 403
        masking = Masking([Rule(path="$.email")], b"s")
        with running_console(broker.bootstrap_servers, runs_sql=True, masking=masking) as console:
            assert console.get("/sql").status == 403
            assert console.post("/sql", {"text": "SHOW TOPICS"}).status == 403
        with running_console(broker.bootstrap_servers, runs_sql=True, allows_changes=False) as console:
            assert "<h1>SQL" in console.page("/sql?text=%3Cscript%3E")
            assert console.get("/sql/none").status == 404


@pytest.mark.slow
def test_statement_runs_live_and_is_stopped() -> None:
    pytest.importorskip("pyspark")
    with Broker() as broker, running_console(broker.bootstrap_servers, runs_sql=True, allows_changes=False) as console:
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(3):
                producer.send("orders", json.dumps({"id": number}).encode())
        answer = console.post("/sql", {"text": "SELECT _offset, value FROM orders ORDER BY _offset"})
        assert answer.status == 303, answer.text
        path = answer.place.partition("?")[0]
        found = until(console, path, "done")
        assert (found["columns"], found["rows"]) == (["_offset", "value"], 3)
        assert '{"id": 2}' in str(found["cells"])
        console.page(path)
        assert path.rpartition("/")[2] in console.page("/sql")
        answer = console.post("/sql", {"text": "SELECT FROM"})
        failed = until(console, answer.place.partition("?")[0], "failed")
        assert failed["messages"]
        live = console.post("/sql", {"text": "SET 'auto.offset.reset'='earliest'; SELECT value FROM orders EMIT CHANGES"})
        path = live.place.partition("?")[0]
        deadline_s = time.monotonic() + HANG_S
        while console.api(path)["rows"] != 3:
            assert time.monotonic() < deadline_s, console.api(path)
            time.sleep(0.2)
        console.page(path)
        console.done(f"{path}/stop", {})
        assert console.api(path)["state"] == "stopped"
