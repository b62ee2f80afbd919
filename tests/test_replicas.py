"""Tests copies of the app behind a real nginx: a visitor stays on one, and is on another when that is killed."""

import hashlib
import http.client
import shutil
import time

import pytest

from deploy.replicas import Replicas, free_port

COOKIE = "headsup_server"
pytestmark = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is None,
    reason="nginx is not installed",
)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    with Replicas(tmp_path_factory.mktemp("replicas"), 3, free_port()) as started:
        started.start_all()
        yield started


@pytest.fixture
def ask(replicas):
    """`ask(server)`: the server on which a visitor is after a question, who was on this one, or on none, before."""

    def ask(server="", path="/api/health", status=200, **headers):
        connection = http.client.HTTPConnection(replicas.url.removeprefix("http://"), timeout=20)
        connection.request("GET", path, headers={"Cookie": f"{COOKIE}={server}", **headers})
        answer = connection.getresponse()
        connection.close()
        assert answer.status == status, answer.status
        cookies = [each for each in answer.headers.get_all("Set-Cookie", []) if each.startswith(COOKIE)]
        return cookies[0].partition(";")[0].removeprefix(f"{COOKIE}=") if cookies else server

    return ask


def name(port):
    return hashlib.md5(f"127.0.0.1:{port}".encode()).hexdigest()[:8]


def test_new_visitors_are_spread_over_all(replicas, ask):
    assert {ask() for _ in range(9)} == {name(port) for port in replicas.app_ports}
    assert ask("unknown") in {name(port) for port in replicas.app_ports}


def test_a_page_gets_its_websocket(replicas, ask):
    key = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": replicas.url}
    server = ask()
    assert ask(server, "/_stcore/stream", 101, **key) == server


def test_a_visitor_stays_and_moves_only_when_the_server_is_killed(replicas, ask):
    server = ask()
    assert [ask(server) for _ in range(6)] == [server] * 6
    killed = next(at for at, port in enumerate(replicas.app_ports, 1) if name(port) == server)
    replicas.processes[f"app-{killed}"].kill()
    replicas.processes[f"app-{killed}"].wait()
    other = ask(server)  # which doesn't wait for one that is gone
    assert other != server
    assert [ask(other) for _ in range(6)] == [other] * 6

    replicas.restart_ended()
    for _ in range(300):
        if server in [ask() for _ in range(3)]:
            break
        time.sleep(0.2)
    else:
        pytest.fail("the server that was killed gets no visitors after it was started anew")
    assert [ask(other) for _ in range(6)] == [other] * 6, "nobody moves back"
