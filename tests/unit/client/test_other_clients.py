"""Names and arguments of other clients get a sentence, and cost nothing else: `hasattr`, `dir`, mocks, signatures."""

import asyncio
import copy
import inspect
import pickle
from abc import ABC
from collections.abc import Callable
from typing import Any, cast
from unittest.mock import AsyncMock, create_autospec

import pytest

import ottla
from ottla import Admin, Consumer, ConsumerRecord, Delivery, NewTopic, Producer, aio
from ottla.client.other_clients import ADMIN, ARGUMENTS, CONSUMER, MODULE, PRODUCER

FACES = [
    (Producer, PRODUCER),
    (aio.Producer, PRODUCER),
    (Consumer, CONSUMER),
    (aio.Consumer, CONSUMER),
    (Admin, ADMIN),
    (aio.Admin, ADMIN),
]


@pytest.mark.parametrize(("face", "names"), FACES, ids=lambda value: getattr(value, "__module__", ""))
def test_methods_of_other_clients_are_not_there_and_say_what_is(face: type, names: dict[str, str]) -> None:
    missing = [name for name in names if not hasattr(face, name)]
    assert len(missing) >= len(names) - 2, "of some, one face has a method of the same name"
    made = face.__new__(face)
    for name in missing:
        assert not hasattr(made, name)
        with pytest.raises(AttributeError) as raised:
            getattr(made, name)
        assert str(raised.value) == names[name]
        assert name not in dir(made)
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = cast(Any, made).frobnicate


def test_produce_is_send() -> None:
    with pytest.raises(AttributeError, match=r"^`produce` is `send` here: producer\.send\(topic, value, key=…"):
        _ = cast(Any, Producer).produce


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cast(Any, Consumer).poll(None, timeout_ms=100), "Consumer.poll(): `timeout_ms` is `timeout` here, in seconds"),
        (lambda: cast(Any, Consumer).subscribe(None, pattern="^o"), "consumer.subscribe(re.compile(…))"),
        (lambda: cast(Any, Consumer).commit(None, asynchronous=False), "commit_async() does not"),
        (lambda: asyncio.run(cast(Any, aio.Consumer).commit(None, message=1)), "consumer.commit(record)"),
        (lambda: cast(Any, Producer).flush(None, timeout_ms=1), "`timeout_ms` is `timeout` here, in seconds"),
        (lambda: cast(Any, Admin).create_topics(None, new_topics=[]), "is the first argument here, `topics`"),
        (lambda: cast(Any, Admin).create_topics(None, [], operation_timeout=3), "admin.with_timeout(seconds)"),
        (lambda: cast(Any, NewTopic)("orders", num_partitions=3), "NewTopic(): `num_partitions` is `partitions` here"),
        (lambda: Consumer("orders", bootstrap_servers="localhost:9092"), 'then consumer.subscribe(["orders"])'),
        (lambda: aio.Producer("a:1", bootstrap_servers="a:1"), "the first argument is where the brokers are already"),
    ],
)
def test_arguments_of_other_clients_say_what_is_here(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert said in str(raised.value)


def test_records_and_deliveries_say_what_is_here() -> None:
    record: Any = ConsumerRecord("orders", 0, 1, value=b"x")
    delivery: Any = Delivery(None, 0, 0)
    for having, name, said in (
        (record, "error", "poll() raises errors"),
        (delivery, "get", "`get` is `result` here"),
        (delivery, "add_callback", "on_delivery=f"),
    ):
        assert not hasattr(having, name)
        with pytest.raises(AttributeError) as raised:
            getattr(having, name)
        assert said in str(raised.value)


def test_every_method_in_the_table_of_arguments_exists() -> None:
    for face in (Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin):
        for method, arguments in ARGUMENTS[face.__name__].items():
            parameters = inspect.signature(getattr(face, method)).parameters
            assert not set(arguments) & set(parameters), "what is here needs no sentence"


@pytest.mark.parametrize("name", list(MODULE))
def test_imports_of_other_clients_say_what_to_import(name: str) -> None:
    for module in ("ottla", "ottla.aio"):
        with pytest.raises(ImportError) as raised:
            exec(f"from {module} import {name}")
        assert str(raised.value) == MODULE[name]
    assert not hasattr(ottla, name)
    with pytest.raises(AttributeError) as missing:
        getattr(ottla, name)
    assert str(missing.value) == MODULE[name]


def test_other_missing_names_are_refused_as_ever() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Frobnicator'"):
        exec("from ottla import Frobnicator")
    with pytest.raises(AttributeError, match=r"module 'ottla\.aio' has no attribute 'Frobnicator'"):
        _ = cast(Any, aio).Frobnicator


def test_mocks_signatures_and_copies_work() -> None:
    mock = create_autospec(Consumer, instance=True)
    mock.poll.return_value = ["record"]
    assert mock.poll(1.0) == ["record"]
    assert not hasattr(mock, "consume")
    with pytest.raises(TypeError):
        mock.poll(timeout_ms=1)
    assert isinstance(create_autospec(aio.Consumer, instance=True).commit, AsyncMock)
    assert inspect.iscoroutinefunction(aio.Consumer.commit)
    assert "timeout" in inspect.signature(Consumer.poll).parameters
    topic = NewTopic("orders", 3)
    assert pickle.loads(pickle.dumps(topic)) == copy.copy(topic) == topic._replace(partitions=3)


def test_subclass_may_have_the_names_itself() -> None:
    class Mine(Producer[bytes, bytes]):
        def produce(self) -> str:
            return "mine"

    assert Mine.__new__(Mine).produce() == "mine"

    class Abstract(Producer[bytes, bytes], ABC):
        pass

    assert issubclass(Abstract, Producer)
