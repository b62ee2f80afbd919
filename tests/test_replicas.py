"""Tests copies of the app behind a real nginx: a visitor stays on one, and is on another when that is killed."""

import http.client
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deploy.replicas import Replicas, free_port

COOKIE, PATH = "headsup_server", "school/headsup"
WEBSOCKET = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
WEBSOCKET |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
pytestmark = [
    pytest.mark.skipif(
        shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is None,
        reason="nginx is not installed",
    ),
    pytest.mark.timeout(300),  # a busy machine starts servers slowly
]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    with Replicas(tmp_path_factory.mktemp("replicas"), 2, free_port(), base_path=PATH) as started:
        started.start_all()
        yield started


def test_a_container_below_a_path_finds_out_whether_it_is_healthy(replicas):
    text = (Path(__file__).parents[1] / "Containerfile").read_text(encoding="utf-8")
    _, *options, code = json.loads(re.search(r"HEALTHCHECK [^[]*CMD (\[.*\])", text)[1])
    command = [sys.executable, *options, code.replace("8501", str(replicas.app_ports[0]))]
    for path, is_healthy in ((PATH, True), ("", False), ("other", False)):
        env = {"STREAMLIT_SERVER_BASE_URL_PATH": path}
        assert (subprocess.run(command, env=env, capture_output=True).returncode == 0) == is_healthy, path


def test_every_container_has_limits_and_memory_goes_back_to_the_system_wherever_the_app_is_started(replicas):
    root = Path(__file__).parents[1]
    compose = (root / "compose.yaml").read_text(encoding="utf-8").partition("\nservices:")[2].partition("\nvolumes:")[0]
    services = re.split(r"^  (\w+):$", compose, flags=re.MULTILINE)
    limits = {
        name: set(re.findall(r"^    (mem_limit|cpus|pids_limit): ", text, re.MULTILINE))
        for name, text in zip(services[1::2], services[2::2], strict=True)
    }
    assert limits == {name: {"mem_limit", "cpus", "pids_limit"} for name in ("nginx", "app", "redis")}
    of_containers = dict(re.findall(r"(MALLOC_\w+)=(\d+)", (root / "Containerfile").read_text(encoding="utf-8")))
    assert len(of_containers) == 2 and of_containers.items() <= replicas._environment.items()


def test_an_address_has_limits_that_a_lecture_of_300_does_not_meet(replicas):
    """In nginx's configuration; and with lower ones, nginx holds them."""
    file, url = replicas.folder / "nginx.conf", urlsplit(replicas.url)
    text = file.read_text(encoding="utf-8")
    numbers = {name: int(re.search(rf"{name}[ =](\d+)", text)[1]) for name in ("burst", "limit_conn connections")}
    assert numbers["burst"] >= 300 * 100, "files that a page fetches at first"
    assert numbers["limit_conn connections"] >= 300 * 5, "a page's websocket, and its room's streams"
    assert 2 * numbers["limit_conn connections"] < int(re.search(r"worker_connections (\d+)", text)[1]), (
        "others have some"
    )

    def ask(method="GET", path="/api/models", body=None, **headers):
        connection = http.client.HTTPConnection(url.netloc, timeout=30)
        connection.request(method, f"{url.path}{path}", body, headers)
        return connection.getresponse()

    def restart(*changes):
        changed = text
        for pattern, value in changes:
            changed = re.sub(pattern, value, changed)
        file.write_text(changed, encoding="utf-8")
        replicas.processes["nginx"].terminate()
        replicas.processes["nginx"].wait()
        replicas.start("nginx")
        replicas.wait_until_healthy()

    key = {**WEBSOCKET, "Origin": f"{url.scheme}://{url.netloc}"}
    put = ask("PUT", "/_stcore/upload_file/session/file", b"content")
    assert put.status == 403, "the app's answer: no visitor has sent it"
    try:
        for changes, asks in (
            ([(r"burst=\d+", "burst=20"), (r"rate=\d+r/s", "rate=1r/m")], [{}] * 30),
            ([(r"(limit_conn connections) \d+", r"\1 3")], [{"path": "/_stcore/stream", **key}] * 5),
        ):
            restart(*changes)
            answers = [ask(**each) for each in asks]
            statuses, last = [answer.status for answer in answers], answers[-1]
            assert {*statuses} in ({200, 429}, {101, 429}) and last.headers["Retry-After"] == "1"
            assert json.load(last)["error"].startswith("Too much at once comes from your address")
    finally:
        restart()


def test_a_visitor_stays_and_moves_only_when_the_server_is_killed(replicas):
    url = urlsplit(replicas.url)

    def ask(server="", path="/_stcore/health", status=200, **headers):
        """The server on which a visitor is after a question, who was on this one, or on none, before."""
        connection = http.client.HTTPConnection(url.netloc, timeout=30)
        connection.request("GET", f"{url.path}{path}", headers={"Cookie": f"{COOKIE}={server}", **headers})
        answer = connection.getresponse()
        connection.close()
        assert answer.status == status, answer.status
        cookies = [each for each in answer.headers.get_all("Set-Cookie", []) if each.startswith(COOKIE)]
        return cookies[0].partition(";")[0].removeprefix(f"{COOKIE}=") if cookies else server

    assert {replicas.app_of(ask()) for _ in range(9)} == {"app-1", "app-2"}, "new visitors are spread over all"
    assert replicas.app_of(ask("unknown"))
    server = ask()
    assert [ask(server) for _ in range(6)] == [server] * 6
    key = {**WEBSOCKET, "Origin": replicas.url.removesuffix(f"/{PATH}")}
    assert ask(server, "/_stcore/stream", 101, **key) == server, "a page gets its websocket"
    replicas.kill(replicas.app_of(server))
    other = ask(server)  # which doesn't wait for one that is gone
    assert other != server
    assert ask(server, "/api/health") == server, "a question to the engine takes nobody from the server of their page"
    assert [ask(other) for _ in range(6)] == [other] * 6

    replicas.restart_ended()
    for _ in range(300):
        if server in [ask() for _ in range(3)]:
            break
        time.sleep(0.2)
    else:
        pytest.fail("the server that was killed gets no visitors after it was started anew")
    assert [ask(other) for _ in range(6)] == [other] * 6, "nobody moves back"
