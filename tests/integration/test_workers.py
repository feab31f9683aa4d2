"""`turnout serve --workers N`: several processes on one port."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engines.simulator import simulated
from gateway.cli.server import ONE_KEYSTROKE
from gateway.supervisor.restarts import IN_VAIN
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, delta, event
from tests.support.process import START, Process
from tests.support.scripted import ScriptedEngine, Talk, reply, silent
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes by way of /proc")

CALL = HELLO | {"model": "m"}


class Group(Process):
    """A running `turnout serve` with several processes."""

    port = 0

    @property
    def serving(self) -> list[int]:
        """The processes that have started and not ended, by what the log says."""
        ended = {line["pid"] for line in self.logged("serving process ended")}
        return [line["pid"] for line in self.logged("serving process started") if line["pid"] not in ended]

    async def all_serving(self, count: int = 2) -> list[int]:
        await until(lambda: len(self.serving) == count, START, f"{count} serving processes")
        return self.serving

    async def replaced(self, pid: int) -> int:
        """The process that serves in place of another."""

        def replacements() -> list[int]:
            return [line["pid"] for line in self.logged("serving process started") if line.get("replaces") == pid]

        await until(lambda: bool(replacements()), START, "the replacement")
        return replacements()[0]

    async def connect_to(self, pid: int, stack: AsyncExitStack) -> Client:
        """A connection that a certain process serves."""
        while True:
            client = await stack.enter_async_context(await Client.open(self.port))
            await call(client)
            if server_of(client, [pid]) == pid:
                return client


Serve = Callable[..., Awaitable[Group]]


@pytest.fixture
async def serve(tmp_path: Path, engine: ScriptedEngine) -> AsyncIterator[Serve]:
    """Starts `turnout serve` with two processes in front of the scripted engine."""
    started: list[Group] = []

    async def start(*arguments: str, **server: Json) -> Group:
        engine.answer(reply(completion(model="m")))
        settings = {
            "server": {"port": 0, "workers": 2, **server},
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"m": {"engine": "e"}},
        }
        (tmp_path / "turnout.yaml").write_text(json.dumps(settings))
        group = Group(tmp_path, "serve", *arguments)
        started.append(group)
        group.port = await group.listening()
        return group

    yield start
    for group in started:
        left = children(group.popen.pid)
        group.kill()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def server_of(client: Client, pids: Collection[int]) -> int | None:
    """Which of the processes has the other end of a connection, by what the kernel says."""
    ours = client.writer.get_extra_info("sockname")[1]
    theirs = client.writer.get_extra_info("peername")[1]
    ends = (f"0100007F:{theirs:04X}", f"0100007F:{ours:04X}")
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if (row[1], row[2]) == ends}
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if str(file.readlink()) in sockets:
                    return pid
    return None


async def call(client: Client) -> Answer:
    await client.post(CHAT, CALL)
    answer = await client.answer()
    assert answer.status == 200
    return answer


async def get(client: Client, path: str, method: str = "GET") -> Answer:
    await client.send(f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n".encode())
    return await client.answer()


async def post(client: Client, path: str) -> Answer:
    return await get(client, path, "POST")


async def try_call(client: Client) -> int:
    await client.post(CHAT, CALL)
    return (await client.answer()).status


async def numbers(client: Client) -> dict[str, float]:
    """Every sample of /metrics, by its name and labels."""
    answer = await get(client, "/metrics")
    assert answer.status == 200, answer.body
    found = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            found[f"{sample.name}{sorted(sample.labels.items())}"] = sample.value
    return found


def served(samples: dict[str, float]) -> float:
    return sum(value for name, value in samples.items() if name.startswith("turnout_requests_total"))


COUNTERS = re.compile(r"\w+_(total|count|sum|bucket)\b")


def assert_not_less(before: dict[str, float], after: dict[str, float]) -> None:
    counters = {name: value for name, value in before.items() if COUNTERS.match(name)}
    assert counters
    assert {name: (value, after.get(name)) for name, value in counters.items() if after.get(name, -1) < value} == {}


@pytest.mark.parametrize("carrier", ["protocol", "asgi"])
async def test_all_processes_get_requests_and_any_tells_what_all_have_counted(serve: Serve, carrier: str) -> None:
    group = await serve("--carrier", carrier)
    pids = await group.all_serving()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        asked = served(await numbers(clients[0]))
        for _ in range(40):
            await call(await stack.enter_async_context(await Client.open(group.port)))
        await asyncio.gather(*map(call, clients))
        told = [await numbers(client) for client in clients]
        texts = [(await get(client, "/metrics")).body for client in clients]

    assert [served(samples) for samples in told] == [asked + 42, asked + 42]
    assert [samples["turnout_in_flight[('engine', 'e'), ('model', 'm')]"] for samples in told] == [0, 0]
    assert told[0]["process_resident_memory_bytes[]"] > 2 * 20e6
    series = [[line.rpartition(b" ")[0] for line in text.splitlines() if not line.startswith(b"#")] for text in texts]
    assert series[0] == series[1]
    assert sorted(children(group.popen.pid)) == sorted(pids)


async def test_metrics_have_the_form_that_one_process_gives_them(serve: Serve) -> None:
    alone = await serve("--workers", "1")
    together = await serve("--workers", "3")
    await together.all_serving(3)
    texts = []
    for group in (alone, together):
        async with await Client.open(group.port) as client:
            await call(client)
            await call(client)
            texts.append((await get(client, "/metrics")).body)

    assert b'turnout_requests_total{engine="e",model="m",outcome="' in texts[0]
    lines = [[line.rpartition(b" ")[0] if line[:1] != b"#" else line for line in text.splitlines()] for text in texts]
    assert lines[0] == lines[1]


async def test_a_killed_process_is_replaced_and_nobody_else_notices(serve: Serve, engine: ScriptedEngine) -> None:
    """No connection is refused meanwhile, and no count is taken back."""
    group = await serve()
    doomed, other = await group.all_serving()
    stop = asyncio.Event()
    outcomes: Counter[str] = Counter()
    tellings: list[dict[str, float]] = []

    async def visit() -> None:
        """New connections all the time: refused ones would fail the test, cut ones are those of the dead."""
        while not stop.is_set():
            async with await Client.open(group.port) as client:
                try:
                    await call(client)
                    outcomes["served"] += 1
                except (asyncio.IncompleteReadError, ConnectionError):
                    outcomes["cut"] += 1

    async def stay(client: Client) -> None:
        while not stop.is_set():
            await call(client)
            outcomes["stayed"] += 1

    async def watch(client: Client) -> None:
        while not stop.is_set():
            tellings.append(await numbers(client))

    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(other, stack) for _ in range(3)]
        before = await numbers(clients[0])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(visit())
            tasks.create_task(stay(clients[0]))
            tasks.create_task(stay(clients[1]))
            tasks.create_task(watch(clients[2]))
            await until(lambda: outcomes["served"] > 20, START, "traffic")
            os.kill(doomed, signal.SIGKILL)
            new = await group.replaced(doomed)
            seen = outcomes["served"]
            await until(lambda: outcomes["served"] > seen + 20, START, "traffic at the new process")
            client = await group.connect_to(new, stack)
            stop.set()
        tellings += [await numbers(client), await numbers(clients[0])]

    assert outcomes["cut"] <= 3
    for earlier, later in zip([before, *tellings], tellings, strict=False):
        assert_not_less(earlier, later)
    assert served(tellings[-1]) == served(tellings[-2]) > served(before)
    (ended,) = group.logged("serving process ended")
    assert (ended["pid"], ended["how"], ended["level"]) == (doomed, "killed by SIGKILL", "warning")
    assert sorted(group.serving) == sorted([other, new])


async def test_a_process_that_hangs_does_not_hold_up_metrics(serve: Serve) -> None:
    """Its last known counts are shown."""
    group = await serve()
    pids = await group.all_serving()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        before = await numbers(clients[0])
        os.kill(pids[1], signal.SIGSTOP)
        try:
            during = [await numbers(clients[0]), await numbers(clients[0])]
        finally:
            os.kill(pids[1], signal.SIGCONT)
        after = await numbers(clients[1])

    assert {served(samples) for samples in (before, *during, after)} == {served(before)}


async def test_a_supervisor_that_hangs_makes_metrics_unavailable_rather_than_wrong(serve: Serve) -> None:
    group = await serve()
    await group.all_serving()
    async with await Client.open(group.port) as client:
        os.kill(group.popen.pid, signal.SIGSTOP)
        try:
            answer = await get(client, "/metrics")
            await call(client)
        finally:
            os.kill(group.popen.pid, signal.SIGCONT)
        assert answer.status == 503
        assert served(await numbers(client)) == 1


async def test_streams_of_all_processes_finish_after_a_signal(serve: Serve, engine: ScriptedEngine) -> None:
    group = await serve()
    pids = await group.all_serving()
    held: list[Talk] = []

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("one")))
        held.append(talk)
        await talk.stall()

    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        engine.answer(script)
        answers = []
        for client in clients:
            await client.post(CHAT, STREAM | {"model": "m"})
            answers.append(await client.head())
            answers[-1].body += await client.chunk()
        group.interrupt()
        await until(lambda: len(group.logged("draining")) == 2, START, "the drain of both")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", group.port))
        for talk in held:
            await talk.chunk(event(delta("two")), event(delta(finish="stop")), DONE)
            await talk.end_chunks()
        for client, answer in zip(clients, answers, strict=True):
            await client.body(answer)

    assert [answer.whole for answer in answers] == [True, True]
    assert [answer.events[-1] for answer in answers] == [b"[DONE]", b"[DONE]"]
    assert await group.ended() == 0
    assert [line["how"] for line in group.logged("serving process ended")] == ["exit code 0", "exit code 0"]
    assert {line["level"] for line in group.logs} == {"info"}
    assert group.stdout == f"turnout: listening on http://127.0.0.1:{group.port}\n"


async def test_without_the_supervisor_the_processes_finish_their_streams_and_end(
    serve: Serve, engine: ScriptedEngine
) -> None:
    group = await serve()
    pids = await group.all_serving()
    held: list[Talk] = []

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("one")))
        held.append(talk)
        await talk.stall()

    engine.answer(script)
    async with await Client.open(group.port) as client:
        await client.post(CHAT, STREAM | {"model": "m"})
        answer = await client.head()
        answer.body += await client.chunk()
        os.kill(group.popen.pid, signal.SIGKILL)
        await until(lambda: len(group.logged("the supervisor is gone")) == 2, START, "the notice of both")
        await held[0].chunk(event(delta(finish="stop")), DONE)
        await held[0].end_chunks()
        await client.body(answer)

    assert answer.whole
    await until(lambda: not any(map(alive, pids)), START, "the end of all processes")


async def test_a_process_that_is_asked_to_end_by_itself_is_replaced_before_it_has_ended(
    serve: Serve, engine: ScriptedEngine
) -> None:
    """So no new connection waits for its streams to finish."""
    group = await serve(drain="60s")
    pids = await group.all_serving()

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("one")))
        await talk.stall()

    async with AsyncExitStack() as stack:
        client = await group.connect_to(pids[0], stack)
        engine.answer(script)
        await client.post(CHAT, STREAM | {"model": "m"})
        await client.head()
        os.kill(pids[0], signal.SIGTERM)
        await group.replaced(pids[0])

        assert alive(pids[0])
        assert group.logged("serving process ended") == []


async def test_what_does_not_end_is_killed_after_the_drain(serve: Serve) -> None:
    group = await serve(drain="100ms")
    pids = await group.all_serving()
    os.kill(pids[0], signal.SIGSTOP)
    group.interrupt(signal.SIGINT)

    assert await group.ended() == 1
    assert group.logged("killing what does not end")[0]["pids"] == [pids[0]]
    assert not any(map(alive, pids))


async def test_a_second_interrupt_a_little_later_ends_the_drain(serve: Serve, engine: ScriptedEngine) -> None:
    group = await serve(drain="60s")
    await group.all_serving()
    engine.answer(silent)
    async with await Client.open(group.port) as client:
        await client.post(CHAT, CALL)
        await until(lambda: any(request.method == b"POST" for request in engine.requests), START, "the request")
        group.interrupt(signal.SIGINT)
        await until(lambda: bool(group.logged("draining")), START, "the drain")
        asked_at = time.monotonic()
        await until(lambda: time.monotonic() > asked_at + 2 * ONE_KEYSTROKE, what="a second thought")
        group.interrupt(signal.SIGINT)

        assert await group.ended(40) == 0


async def test_a_signal_during_the_start_ends_it(tmp_path: Path) -> None:
    """The processes may or may not have come far enough to end by themselves."""
    arguments = ("--port", "0", "--workers", "3", "--engine", "vllm=http://127.0.0.1:9")
    group = Group(tmp_path, "serve", *arguments)
    try:
        await until(lambda: bool(children(group.popen.pid)), START, "the first process")
        pids = children(group.popen.pid)
        group.interrupt()
        assert await group.ended() == 0
    finally:
        group.kill()

    assert not any(map(alive, pids))
    assert "Traceback" not in group.stderr


async def test_a_hang_up_ends_nothing(serve: Serve) -> None:
    group = await serve()
    pids = await group.all_serving()
    group.interrupt(signal.SIGHUP)
    for pid in pids:
        os.kill(pid, signal.SIGHUP)
    async with AsyncExitStack() as stack:
        for pid in pids:
            await group.connect_to(pid, stack)

    assert group.serving == pids
    assert group.popen.poll() is None


async def test_it_gives_up_when_no_process_can_start(tmp_path: Path) -> None:
    """One line says why; nothing is left behind. Here, every fork dies of an environment that is against it."""
    (tmp_path / "sitecustomize.py").write_text("import os\nos.register_at_fork(after_in_child=lambda: os._exit(3))\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    arguments = ("--port", "0", "--workers", "2", "--engine", "vllm=http://127.0.0.1:9")
    group = Group(tmp_path, "serve", *arguments, environment={"PYTHONPATH": path})
    try:
        code = await group.ended()
    finally:
        group.kill()
    *lines, last = group.stderr.splitlines()

    assert code == 1
    assert last == "turnout: the gateway does not start: its processes end before they serve (the last: exit code 3)"
    assert sum("serving process ended" in line for line in lines) == IN_VAIN
    assert group.stdout == ""


async def test_discovered_models_are_known_to_all(tmp_path: Path) -> None:
    async with simulated("vllm", ["m"]) as url:
        group = Group(tmp_path, "serve", "--port", "0", "--workers", "2", "--engine", f"vllm={url}")
        try:
            group.port = await group.listening()
            async with AsyncExitStack() as stack:
                for pid in await group.all_serving():
                    await group.connect_to(pid, stack)
            group.interrupt()
            assert await group.ended() == 0
        finally:
            group.kill()


async def test_what_holds_per_process_is_said_once(serve: Serve) -> None:
    group = await serve()
    (line,) = group.logged("max_in_flight and the retry budget hold in each process by itself")
    assert len(group.logged("no key is asked for: whoever reaches the port may call every model")) == 1

    assert line["processes"] == 2


async def test_a_port_in_use_is_refused_to_several_processes_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        group = Group(tmp_path, "serve", "--port", str(port), "--workers", "2", "--engine", "vllm=http://127.0.0.1:9")
        code = await group.ended()

    assert code == 1
    assert group.stderr.startswith(f"turnout: cannot listen on 127.0.0.1:{port}: Address already in use; ")
    assert group.stderr.count("\n") == 1


async def test_an_order_of_an_operator_reaches_every_process_before_it_is_answered(serve: Serve) -> None:
    group = await serve()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in await group.all_serving()]
        answers = []
        for order, expected in (("drain", 503), ("undrain", 200)):
            for client in clients:
                answers.append(await post(client, f"/admin/engines/e/{order}"))
                assert [await try_call(one) for one in clients] == [expected, expected]

    assert [answer.status for answer in answers] == [200] * 4
    assert [answer.json["endpoints"][0]["state"] for answer in answers[:2]] == ["draining", "draining"]
    assert answers[0].json["endpoints"][0]["reason"] == "drained by an operator"
    assert answers[3].json["endpoints"][0]["state"] in {"up", "unknown"}


async def test_a_process_that_starts_later_knows_what_is_drained(serve: Serve) -> None:
    group = await serve()
    doomed, other = await group.all_serving()
    async with AsyncExitStack() as stack:
        client = await group.connect_to(other, stack)
        assert (await post(client, "/admin/engines/e/drain")).status == 200
        os.kill(doomed, signal.SIGKILL)
        new = await group.replaced(doomed)
        while True:
            newcomer = await stack.enter_async_context(await Client.open(group.port))
            status = await try_call(newcomer)
            if server_of(newcomer, [new]) == new:
                break
        shown = await get(newcomer, "/admin/engines")
        assert (await post(newcomer, "/admin/engines/e/undrain")).status == 200
        assert [await try_call(one) for one in (client, newcomer)] == [200, 200]

    assert status == 503
    assert [endpoint["state"] for endpoint in shown.json[0]["endpoints"]] == ["draining"]


async def test_requests_in_flight_are_those_of_all_processes(serve: Serve, engine: ScriptedEngine) -> None:
    group = await serve()
    async with AsyncExitStack() as stack:
        pids = await group.all_serving()
        clients = [await group.connect_to(pid, stack) for pid in pids]
        engine.answer(silent)
        for client in clients:
            await client.post(CHAT, CALL)
        busy = [request for request in engine.requests if request.method == b"POST"]
        await until(
            lambda: sum(request.method == b"POST" for request in engine.requests) >= len(busy) + 2, START, "both"
        )
        watcher = await stack.enter_async_context(await Client.open(group.port))
        shown = await get(watcher, "/admin/engines")

    assert shown.json[0]["endpoints"][0]["in_flight"] == 2


async def test_an_order_that_a_process_has_not_heeded_yet_is_not_called_done(serve: Serve) -> None:
    """It hangs; the order waits for it, and is not forgotten."""
    group = await serve()
    pids = await group.all_serving()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        os.kill(pids[1], signal.SIGSTOP)
        try:
            answer = await post(clients[0], "/admin/engines/e/drain")
        finally:
            os.kill(pids[1], signal.SIGCONT)
        assert (answer.status, answer.error["code"]) == (503, "processes_unreachable")
        assert answer.error["message"].startswith("1 of 2 serving processes have not confirmed")
        assert (await post(clients[0], "/admin/engines/e/drain")).status == 200
        assert [await try_call(client) for client in clients] == [503, 503]


async def test_orders_that_cross_leave_all_processes_alike(serve: Serve) -> None:
    group = await serve()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in await group.all_serving()]
        for _ in range(10):
            await asyncio.gather(
                post(clients[0], "/admin/engines/e/drain"), post(clients[1], "/admin/engines/e/undrain")
            )
            assert len({await try_call(client) for client in clients}) == 1


async def test_without_the_supervisor_an_order_is_refused(serve: Serve) -> None:
    group = await serve()
    await group.all_serving()
    async with await Client.open(group.port) as client:
        os.kill(group.popen.pid, signal.SIGSTOP)
        try:
            answer = await post(client, "/admin/engines/e/drain")
        finally:
            os.kill(group.popen.pid, signal.SIGCONT)

    assert (answer.status, answer.error["code"]) == (503, "processes_unreachable")
