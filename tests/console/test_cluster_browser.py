"""The console's other pages in Chromium: groups' changes, transactions, nodes, moves, access, schemas, pipelines, SQL."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from tests.conftest import Unavailable
from tests.console.browser import Chromium, NoBrowser, axe_source, chromium
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import AclBinding, Admin, Producer, QuotaEntity, ScramUpsertion
from ottla.schemas import Schema, SchemaRegistry
from ottla.spark.pipelines.metrics import MetricsPage, RunMetrics
from ottla.spark.pipelines.run import FlowProgress
from ottla.testing import Broker, Security

pytestmark = pytest.mark.slow

HOSTILE = '<script>window.hacked=1</script><img src=x onerror=\'window.hacked=1\'>" onmouseover="window.hacked=1" {{7*7}}</pre>'
GROUP, TRANSACTION = f"billing{HOSTILE}", f"payments{HOSTILE}"
SUBJECT = f"orders-value{HOSTILE}"
G, T, S = (quote(each, safe="") for each in (GROUP, TRANSACTION, SUBJECT))

PAGES = (
    "/",
    f"/groups/{G}",
    f"/groups/{G}/reset",
    f"/groups/{G}/reset?to=earliest",
    f"/groups/{G}/move?target=other",
    f"/groups/{G}/delete-offsets?topic=orders",
    f"/groups/{G}/delete",
    "/transactions",
    "/transactions?open=1",
    f"/transactions/{T}",
    "/hanging-transactions?topic=orders&minutes=0",
    "/nodes",
    "/nodes/1",
    "/nodes/1?all=1",
    "/nodes/all",
    "/quorum",
    "/log-dirs",
    "/reassignments",
    "/reassignments/plan?brokers=1",
    "/acls",
    "/users",
    "/quotas",
    "/tokens",
    "/schemas",
    f"/schemas/{S}",
    f"/schemas/{S}/diff",
    f"/schemas/{S}/check?schema=%7B%7D",
    "/pipelines",
    "/sql",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    try:
        axe_source()
        with chromium() as running:
            yield running
    except NoBrowser as reason:
        raise Unavailable(str(reason)) from None


def record(*names: str) -> Schema:
    fields = [{"name": name, "type": "int", "default": 0, "doc": HOSTILE} for name in names]
    return Schema(json.dumps({"type": "record", "name": "R", "doc": HOSTILE, "fields": fields}))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A secured node with something hostile of everything."""
    with Broker({"delegation.token.secret.key": "secret"}, security=Security(acls=True)) as running:
        config = running.client_config()
        running.create_topic("orders", partitions=2)
        registry = SchemaRegistry(running.schema_registry_url)
        registry.register(SUBJECT, record("a"))
        registry.register(SUBJECT, record("a", "b"))
        producer = Producer(
            running.bootstrap_servers,
            config=config,
            transactional_id=TRANSACTION,
            client_id=HOSTILE,
            transaction_timeout_ms=600_000,
        )
        with Admin(running.bootstrap_servers, config=config) as admin:
            admin.alter_consumer_group_offsets(GROUP, {("orders", 0): 0, ("orders", 1): 0}).raise_first()
            admin.create_acls([AclBinding("topic", f"orders{HOSTILE}", f"User:{HOSTILE}", "read")]).raise_first()
            admin.alter_user_scram_credentials([ScramUpsertion(HOSTILE, "SCRAM_SHA_256", "s")]).raise_first()
            admin.alter_client_quotas({QuotaEntity(user=HOSTILE): {"producer_byte_rate": 1e6}}).raise_first()
            admin.alter_configs({("broker", "1"): {"ssl.keystore.location": None, "log.cleaner.threads": "2"}}).raise_first()
            admin.create_delegation_token(renewers=[f"User:{HOSTILE}"])
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"v").result(30)
        yield running
        producer.close(0)


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[RunningConsole]:
    metrics = RunMetrics(HOSTILE)
    totals = SimpleNamespace(rows={}, batches={}, checks={})
    metrics.follow(SimpleNamespace(flow_names=[], view_names=set(), totals=totals, is_running=True))  # type: ignore[arg-type]
    sources = [{"format": "ottla", "options": {"subscribe": HOSTILE}}]
    metrics.show([{"flow": HOSTILE, "reads": ["a"], "sources": sources, "kind": "table", "target": HOSTILE}])
    with (
        MetricsPage(metrics, "127.0.0.1", 0) as page,
        running_console(
            broker.bootstrap_servers,
            properties=broker.client_config(),
            registry_url=broker.schema_registry_url,
            pipelines=(page.address,),
            runs_sql=True,
            audit_topic="audit",
        ) as running,
    ):
        yield running


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["desktop", "phone"])
def test_pages_are_accessible_and_fit(console: RunningConsole, browser: Chromium, width: int, dark: bool) -> None:
    assert browser.unfit_pages(console.url, PAGES, width=width, dark=dark) == {}


def test_hostile_names_are_text(console: RunningConsole, browser: Chromium) -> None:
    with browser.tab() as tab:
        for path in PAGES:
            tab.open(console.url + path)
            assert tab.page.evaluate("window.hacked") is None, path
            assert tab.page.locator("main img, main script").count() == 0, path
            assert tab.page.get_by_text("49").count() == 0 or "{{7*7}}" in tab.page.content(), path


def test_reset_by_keyboard_with_preview(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    with Admin(broker.bootstrap_servers, config=broker.client_config()) as admin:
        admin.alter_consumer_group_offsets("by-keyboard", {("orders", 0): 0, ("orders", 1): 0}).raise_first()
    with browser.tab() as tab:
        page = tab.page
        tab.open(console.url + "/groups/by-keyboard")
        page.get_by_role("link", name="Reset offsets").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/reset")
        page.locator("select[name=to]").focus()
        page.keyboard.type("latest")
        page.locator("input[name=value]").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**to=latest**")
        page.get_by_role("heading", name="What would change").wait_for()
        page.get_by_role("button", name="Reset 1 offset").focus()
        page.keyboard.press("Enter")
        page.get_by_text("The offsets of 1 partition of group by-keyboard were reset.").wait_for()
        page.get_by_role("link", name="Delete group").click()
        page.get_by_label("Type by-keyboard to confirm").fill("by-keyboard")
        page.get_by_role("button", name="Delete group").click()
        page.get_by_text("Group by-keyboard was deleted.").wait_for()


def test_changes_work_without_scripts(console: RunningConsole, browser: Chromium) -> None:
    with browser.tab(scripts=False) as tab:
        page = tab.page
        tab.open(console.url + "/quotas")
        page.get_by_text("Set a quota").click()
        page.locator("form.fields [name=user]").fill("carol")
        page.locator("[name=limit]").fill("1000")
        page.get_by_role("button", name="Set", exact=True).click()
        page.get_by_text("producer_byte_rate of user carol is 1000.").wait_for()
        tab.open(console.url + "/schemas")
        page.get_by_text("Register a schema").click()
        page.locator("[name=subject]").fill("made")
        page.locator("[name=schema]").fill(record("a").text)
        page.get_by_role("button", name="Register").click()
        page.get_by_text("made has this schema as version 1").wait_for()
        tab.open(console.url + "/acls")
        page.get_by_text("Add a rule").click()
        page.locator("form.fields [name=principal]").fill("dave")
        page.locator("form.fields [name=resource_name]").fill("orders")
        page.get_by_role("button", name="Add").click()
        page.get_by_text("The rule was added: User:dave allow").wait_for()


def test_live_parts_are_refreshed_and_open_forms_stay(console: RunningConsole, browser: Chromium) -> None:
    with browser.tab() as tab:
        tab.open(console.url + "/transactions?open=1")
        row = tab.page.locator("tbody tr").first
        age = row.locator("td").nth(3).inner_text()
        tab.page.wait_for_function("(age) => document.querySelector('tbody tr').cells[4].innerText !== age", arg=age)


def shop() -> RunMetrics:
    """A run of three flows."""
    metrics = RunMetrics("shop")
    totals = SimpleNamespace(rows={"clean": 128_400, "enrich": 127_990, "revenue": 2_140}, batches={}, checks={})
    metrics.follow(SimpleNamespace(flow_names=[], view_names=set(), totals=totals, is_running=True))  # type: ignore[arg-type]

    def flow(name: str, reads: list[str], topics: list[str], target: str) -> dict[str, object]:
        sources = [{"format": "ottla", "options": {"subscribe": each}} for each in topics]
        sink = {"kind": "sink", "target": target, "format": "ottla", "options": {"topic": target}}
        return {"flow": name, "reads": reads, "sources": sources, **sink}

    metrics.show(
        [
            flow("clean", [], ["orders"], "orders.clean"),
            flow("enrich", ["topic orders.clean"], ["customers"], "orders.full"),
            flow("revenue", ["topic orders.full"], [], "revenue"),
        ]
    )
    for number, (name, lag) in enumerate((("clean", 0), ("enrich", 410), ("revenue", 12))):
        metrics.take(FlowProgress(name, 40, 300, 310.0 - 90 * number, 640 + 200 * number, lag, {}))
    return metrics


def test_pictures_of_the_documentation(browser: Chromium) -> None:
    with (
        Broker() as broker,
        MetricsPage(shop(), "127.0.0.1", 0) as page,
        running_console(broker.bootstrap_servers, pipelines=(page.address,)) as console,
    ):
        broker.create_topic("orders", partitions=4)
        for number in range(40):
            broker.produce("orders", f"{number}", partition=number % 4)
        with Admin(broker.bootstrap_servers) as admin:
            offsets = {("orders", partition): 3 + partition for partition in range(4)}
            admin.alter_consumer_group_offsets("billing", offsets).raise_first()
        with browser.tab(width=1000, height=680) as tab:
            tab.open(console.url + "/groups/billing/reset?to=earliest")
            tab.page.get_by_role("button", name="Reset 4 offsets").wait_for()
            tab.picture("console-reset")
        with browser.tab(width=1240, height=520, dark=True) as tab:
            tab.open(console.url + "/pipelines")
            assert tab.page.locator("svg.flows .edge").count() == 7
            tab.picture("console-pipelines")
