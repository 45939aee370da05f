"""The records and topics pages in Chromium: searches, live tails, changes, the keyboard, accessibility, hostile records."""

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests.conftest import Unavailable
from tests.console.browser import Chromium, NoBrowser, axe_source, chromium
from tests.console.test_records import orders
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Consumer, Producer
from ottla.testing import Broker, Cluster

pytestmark = pytest.mark.slow

HOSTILE = '<script>window.hacked=1</script><img src=x onerror=\'window.hacked=1\'>" onmouseover="window.hacked=1" {{7*7}}</pre>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    try:
        axe_source()
        with chromium() as running:
            yield running
    except NoBrowser as reason:
        raise Unavailable(str(reason)) from None


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    """A topic with hostile records, and a group with a hostile name that reads it."""
    orders(broker, "shop.orders", count=300, partitions=3)
    broker.create_topic("hostile")
    text = HOSTILE.encode()
    with Producer(broker.bootstrap_servers, client_id=HOSTILE) as producer:
        producer.send("hostile", text, text, headers=[(HOSTILE, text)])
        producer.send("hostile", json.dumps({HOSTILE: [HOSTILE]}).encode(), None)
        producer.send("hostile", b"x" * 300_000, b"large")
    with Consumer(broker.bootstrap_servers, group_id=HOSTILE, client_id=HOSTILE, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["hostile"])
        assert consumer.poll(timeout=30)
        consumer.commit()
    return "shop.orders"


PAGES = (
    "/",
    "/topics",
    "/topics/shop.orders",
    "/topics/shop.orders/records",
    "/topics/shop.orders/records?q=value.total+%3E+3&from=oldest",
    "/topics/shop.orders/records?q=value.total+%3E",
    "/topics/shop.orders/records/0/1",
    "/topics/shop.orders/send?copy=0:1",
    "/topics/shop.orders/letters",
    "/topics/hostile/records",
    "/topics/hostile/records/0/0",
    "/topics/hostile/records/0/1",
    "/topics/hostile/records/0/2",
    "/topics/hostile/send?copy=0:0",
    "/groups",
    f"/groups/{quote(HOSTILE, safe='')}",
    "/transactions",
    "/hanging-transactions",
    "/nodes",
    "/quorum",
    "/log-dirs",
    "/reassignments",
    "/acls",
    "/users",
    "/quotas",
    "/pipelines",
)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360], ids=["desktop", "phone"])
def test_pages_are_accessible_and_fit(console: RunningConsole, browser: Chromium, filled: str, width: int, dark: bool) -> None:
    assert browser.unfit_pages(console.url, PAGES, width=width, dark=dark) == {}


def test_hostile_content_is_text(console: RunningConsole, browser: Chromium, filled: str) -> None:
    with browser.tab() as tab:
        for path in PAGES:
            tab.open(console.url + path)
            assert tab.page.evaluate("window.hacked") is None
            assert tab.page.locator("main img, main script").count() == 0
        tab.open(console.url + "/topics/hostile/records")
        assert tab.page.get_by_text("<script>window.hacked=1</script>").count() >= 2
        tab.page.get_by_role("button", name="Live").click()
        tab.page.get_by_text("Waiting for new records").wait_for()
        with Producer(console.bootstrap) as producer:
            producer.send("hostile", HOSTILE.encode(), HOSTILE.encode(), headers=[(HOSTILE, b"x")], partition=0)
        tab.page.get_by_text("1 new", exact=True).wait_for()
        assert tab.page.locator("main img, main script").count() == 0


def test_large_value_is_cut_until_all_is_asked_for(console: RunningConsole, browser: Chromium, filled: str) -> None:
    with browser.tab() as tab:
        tab.open(console.url + "/topics/hostile/records/0/2")
        assert len(tab.page.locator("pre.content").nth(1).inner_text()) == 64 * 1024
        tab.page.get_by_role("link", name="Show all").click()
        tab.page.wait_for_url("**all=1**")
        assert len(tab.page.locator("pre.content").nth(1).inner_text()) == 300_000


def test_search_by_keyboard_leads_to_a_record(console: RunningConsole, browser: Chromium, filled: str) -> None:
    with browser.tab() as tab:
        tab.open(console.url + "/topics/shop.orders/records")
        page = tab.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("/")
        page.keyboard.type('value.order.id == "o-123"')
        page.keyboard.press("Enter")
        page.wait_for_url("**q=value**")
        page.get_by_text("300 of 300 records searched, 1 found").wait_for()
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('#rows') !== null"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**/records/0/41")
        assert '"total": 123' in page.locator("pre.content").nth(1).inner_text()
        page.go_back()
        page.get_by_text("300 of 300 records searched, 1 found").wait_for()


def test_search_goes_on_by_itself_and_stops_on_request(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    broker.create_topic("large")
    value = json.dumps({"text": "x" * 100, "total": 1}).encode()
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(60):
            producer.send_many("large", [value] * 10_000)
    with browser.tab() as tab:
        tab.open(console.url + "/topics/large/records?from=oldest&q=value.total+%3E+1")
        tab.page.get_by_role("progressbar").wait_for()
        tab.page.get_by_role("button", name="Stop").click()
        said = tab.page.locator("#status").inner_text()
        assert said.endswith("(stopped)")
        tab.page.get_by_role("link", name="Continue the search").wait_for()
        tab.page.get_by_role("link", name="Continue the search").click()
        tab.page.wait_for_url("**at=**")
        tab.page.get_by_role("progressbar").wait_for(state="detached", timeout=120_000)
        assert "0 found" in tab.page.locator("#status").inner_text()


def test_search_works_without_scripts(console: RunningConsole, browser: Chromium, broker: Broker, filled: str) -> None:
    with browser.tab(scripts=False) as tab:
        tab.open(console.url + "/topics/shop.orders/records")
        tab.page.get_by_label("Search expression").fill("value.total >= 0")
        tab.page.get_by_role("button", name="Show", exact=True).click()
        assert tab.page.locator("#rows tr").count() == 50
        first = tab.page.locator("#rows tr").first.inner_text()
        tab.page.get_by_role("link", name="Continue the search").click()
        assert tab.page.locator("#rows tr").count() == 50
        assert tab.page.locator("#rows tr").first.inner_text() != first


def test_live_tail_shows_new_records_and_says_what_it_skips(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    broker.create_topic("live")
    over = threading.Event()

    def produce() -> None:
        with Producer(broker.bootstrap_servers) as producer:
            while not over.is_set():
                producer.send_many("live", [b'{"n": 1}'] * 5_000)
                producer.flush()

    with browser.tab() as tab:
        tab.open(console.url + "/topics/live/records")
        tab.page.get_by_role("button", name="Live").click()
        tab.page.get_by_text("Waiting for new records").wait_for()
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("live", b"the first")
        tab.page.get_by_text("the first").wait_for()
        thread = threading.Thread(target=produce)
        thread.start()
        try:
            tab.page.locator("#status", has_text="skipped").wait_for()
            tab.picture("console-live")
        finally:
            over.set()
            thread.join()
        tab.page.get_by_role("button", name="Stop").click()
        assert tab.page.locator("#rows tr").count() <= 1_000


def test_record_is_edited_and_sent(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    orders(broker, "edited", count=1, partitions=1)
    with browser.tab() as tab:
        tab.open(console.url + "/topics/edited/records/0/0")
        page = tab.page
        page.get_by_role("link", name="Edit a copy").click()
        assert page.get_by_label("Headers").input_value() == "source: web"
        page.locator("textarea[name=value]").fill('{"total": 12}')
        page.get_by_role("button", name="Send", exact=True).click()
        page.get_by_text("The record was sent to partition 0, offset 1.").wait_for()
        page.get_by_text("Send again").click()
        page.get_by_role("button", name="Send", exact=True).click()
        page.get_by_text("The record was sent to edited, partition 0, offset 2.").wait_for()
    assert [each.value for each in broker.records("edited")][1:] == [b'{"total": 12}'] * 2


def test_file_is_sent_and_letters_go_back(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    broker.create_topic("work")
    broker.create_topic("work.dead")
    lines = "".join(
        json.dumps({"value": {"n": number}, "headers": {"__connect.errors.topic": "work"}}) + "\n" for number in range(7)
    )
    with browser.tab() as tab:
        page = tab.page
        tab.open(console.url + "/topics/work.dead/send")
        page.get_by_label("Or a file").set_input_files({"name": "a.jsonl", "mimeType": "text/plain", "buffer": lines.encode()})
        page.get_by_role("button", name="Send all").click()
        page.get_by_text("7 records were sent.").wait_for()
        page.get_by_role("link", name="Send dead letters back").click()
        page.get_by_text("A dry run: nothing was sent.").wait_for()
        assert broker.records("work") == []
        page.get_by_label("Delete the letters here").check()
        page.get_by_role("button", name="Send 7 back").click()
        page.get_by_text("7 letters were sent back. They were deleted here.").wait_for()
    assert len(broker.records("work")) == 7


def test_topic_is_created_changed_and_deleted(console: RunningConsole, browser: Chromium, broker: Broker) -> None:
    with browser.tab() as tab:
        page = tab.page
        tab.open(console.url + "/topics")
        page.get_by_text("Create a topic").click()
        page.get_by_label("Name").last.fill("made")
        page.get_by_label("Partitions").fill("2")
        page.get_by_label("Settings, one a line").fill("cleanup.policy=compact\nretention.ms=1000000")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("Topic made was created.").wait_for()
        page.get_by_text("Add partitions").click()
        page.get_by_role("button", name="Add").click()
        page.get_by_text("Topic made has 3 partitions.").wait_for()
        page.get_by_text("retention.ms", exact=True).click()
        page.get_by_label("New value of retention.ms").fill("2000000")
        page.get_by_role("button", name="Set", exact=True).click()
        page.get_by_text("retention.ms of topic made is 2000000.").wait_for()
        page.get_by_text("Clone", exact=True).first.click()
        page.get_by_label("New name").fill("made-too")
        page.get_by_role("button", name="Clone").click()
        page.get_by_text("Topic made-too was created with the settings of made.").wait_for()
        assert page.locator("tr.own", has_text="retention.ms").get_by_text("2000000").count() >= 1
        for name in ("made-too", "made"):
            tab.open(f"{console.url}/topics/{name}")
            page.get_by_text("Delete the topic", exact=True).click()
            page.get_by_label(f"Type {name} to confirm").last.fill(name)
            page.get_by_role("button", name="Delete topic").click()
            page.get_by_text(f"Topic {name} was deleted.").wait_for()
    assert not {"made", "made-too"} & {each["name"] for each in console.api("/topics")["rows"]}


def test_pictures_of_the_documentation(browser: Chromium) -> None:
    with Broker() as broker:
        orders(broker, "shop.orders", count=300, partitions=3, first_ms=1_790_000_000_000)
        with running_console(broker.bootstrap_servers) as console:
            with browser.tab(width=1000, height=560) as tab:
                tab.open(console.url + "/topics/shop.orders/records?q=value.total+%3E+260+and+headers.source+%3D%3D+%22shop%22")
                tab.page.get_by_text("300 of 300 records searched, 20 found").wait_for()
                tab.picture("console-records")
            with browser.tab(width=1000, height=560, dark=True) as tab:
                tab.open(console.url + "/topics/shop.orders")
                assert tab.page.get_by_role("heading", name="Partitions").count() == 1
                tab.picture("console-topic")


def test_pages_are_of_apache_kafka_too(browser: Chromium, apache_kafka: ApacheKafka) -> None:
    with apache_kafka.start_server() as server, running_console(server.bootstrap) as console, browser.tab() as tab:
        page = tab.page
        tab.open(console.url + "/topics")
        page.get_by_text("Create a topic").click()
        page.get_by_label("Name").last.fill("apaches")
        page.get_by_label("Partitions").fill("2")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("Topic apaches was created.").wait_for()
        page.get_by_role("link", name="Send records").click()
        page.locator("textarea[name=lines]").fill("\n".join(json.dumps({"value": {"n": number}}) for number in range(40)))
        page.get_by_role("button", name="Send all").click()
        page.get_by_text("40 records were sent.").wait_for()
        page.get_by_label("Search expression").fill("value.n >= 38")
        page.keyboard.press("Enter")
        page.get_by_text("40 of 40 records searched, 2 found").wait_for()
        page.get_by_role("button", name="Live").click()
        page.get_by_text("Waiting for new records").wait_for()
        with Producer(server.bootstrap) as producer:
            producer.send("apaches", b'{"n": 99}')
        page.get_by_text('{"n": 99}').wait_for()
        for path in ("/", "/groups", "/nodes", "/topics/apaches", "/transactions", "/quorum"):
            tab.open(console.url + path)


def test_node_that_is_killed_while_one_looks(browser: Chromium) -> None:
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("three", partitions=6, replication_factor=3)
        with Producer(cluster.bootstrap_servers, acks="all") as producer:
            for number in range(60):
                producer.send("three", f"{number}".encode(), partition=number % 6)
        with running_console(cluster.bootstrap_servers) as console, browser.tab() as tab:
            tab.open(console.url + "/topics/three/records")
            assert tab.page.locator("#rows tr").count() == 50
            tab.page.get_by_role("button", name="Live").click()
            cluster.nodes[0].kill()

            def look(_: Any = None) -> bool:
                answer = tab.page.goto(console.url + "/topics/three/records?limit=60")
                return bool(answer.status == 200 and tab.page.locator("#rows tr").count() == 60)

            tab.problems.clear()
            for _ in range(60):
                if look():
                    break
                tab.page.wait_for_timeout(500)
            else:
                raise AssertionError("the records are not shown after the death of a node")
            tab.problems.clear()  # pages that said that the cluster does not answer yet
