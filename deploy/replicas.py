"""Starts several copies of the app behind nginx, and Redis if it is asked for, where there are no containers.

    python deploy/replicas.py FOLDER --apps 3 --port 8080 --redis

FOLDER takes what they write: logs, visitors' own models, the key that cookies are signed with. They all run as the user
who starts them, and end together, with Ctrl+C or SIGTERM; one that ends by itself is started anew.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "262144"}
"""Settings with which glibc returns freed memory, as in Containerfile."""
SECONDS_TO_START, SECONDS_TO_END = 300.0, 20.0


class Replicas:
    """The processes: a context manager that ends them."""

    def __init__(self, folder: Path, apps: int, port: int, *, redis: bool = False, base_path: str = "") -> None:
        self.folder, self._path = folder.resolve(), f"/{base_path.strip('/')}".rstrip("/")
        self.url = f"http://127.0.0.1:{port}{self._path}"
        self.processes: dict[str, subprocess.Popen] = {}
        (self.folder / "temporary").mkdir(mode=0o700, parents=True, exist_ok=True)
        self.app_ports = [free_port() for _ in range(apps)]
        self._commands = {f"app-{at}": self._app(number) for at, number in enumerate(self.app_ports, 1)}
        self._commands["nginx"] = self._nginx(port)
        self._environment = {
            **MALLOC,
            **os.environ,
            "HEADSUP_SECRET": self._secret(),
            "STREAMLIT_SERVER_COOKIE_SECRET": self._secret(),
            "STREAMLIT_SERVER_BASE_URL_PATH": self._path,
            "HEADSUP_STORE": str(self.folder / "store"),
            "HEADSUP_PROXIES": "127.0.0.1",
        }
        if redis:
            number = free_port()
            self._commands = {"redis": self._redis(number), **self._commands}
            self._environment["HEADSUP_REDIS"] = f"redis://127.0.0.1:{number}/0"

    def start(self, name: str) -> None:
        """Start a process: "app-1", "app-2", ..., "nginx", or "redis"."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self._commands[name],
                cwd=HERE.parent,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start_all(self) -> None:
        """Start all of them, and return when each app answers. Raises: as `wait_until_healthy`."""
        for name in self._commands:
            self.start(name)
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """Return when each app answers.

        Raises: TimeoutError if one has ended, or doesn't answer within five minutes after the one before it did.
        """
        for at, port in enumerate(self.app_ports, 1):
            _wait_for(f"http://127.0.0.1:{port}{self._path}/api/health", self.processes[f"app-{at}"])
        _wait_for(f"{self.url}/api/health", self.processes["nginx"])

    def restart_ended(self, *names: str) -> None:
        """Restart the processes that have ended, or those of them that are named."""
        for name, process in self.processes.items():
            if process.poll() is not None and (not names or name in names):
                print(f"{name} has ended with {process.returncode}; it is started anew.", file=sys.stderr)
                self.start(name)

    def app_of(self, cookie: str) -> str:
        """The app that a visitor's cookie names, such as "app-1"; "" for none."""
        names = {hashlib.md5(f"127.0.0.1:{port}".encode()).hexdigest()[:8]: port for port in self.app_ports}
        return f"app-{self.app_ports.index(names[cookie]) + 1}" if cookie in names else ""

    def kill(self, name: str) -> None:
        """Kill a process, as a failing machine does."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self) -> None:
        """End the apps, which save their visitors' work meanwhile, and then nginx and Redis."""
        for is_app in (True, False):
            ending = [process for name, process in self.processes.items() if name.startswith("app-") == is_app]
            for process in ending:
                process.terminate()
            deadline = time.monotonic() + SECONDS_TO_END
            for process in ending:
                try:
                    process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _app(self, port: int) -> list[str]:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
        return [*command, "--server.address", "127.0.0.1", "--server.headless", "true"]

    def _nginx(self, port: int) -> list[str]:
        addresses = [f"127.0.0.1:{number}" for number in self.app_ports]
        upstreams = subprocess.run(["sh", HERE / "upstreams.sh", *addresses], capture_output=True, check=True).stdout
        (self.folder / "upstreams.conf").write_bytes(upstreams)
        settings = (HERE / "nginx.conf").read_text(encoding="utf-8").replace("listen 8080;", f"listen {port};")
        (self.folder / "nginx.conf").write_text(settings, encoding="utf-8")
        command = [_program("nginx"), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-e", "stderr"]
        # Started by root, nginx would answer as "nobody", who can't write into the folder what is uploaded.
        return command if os.geteuid() else [*command, "-g", "user root;"]

    def _redis(self, port: int) -> list[str]:
        command = [_program("redis-server"), "--bind", "127.0.0.1", "--port", str(port)]
        return [*command, "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always"]

    def _secret(self) -> str:
        file = self.folder / "secret"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(secrets.token_hex(32), encoding="ascii")
        return file.read_text(encoding="ascii")


def _program(name: str) -> str:
    """The path of a program. Debian keeps servers in folders that are only on root's path."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise FileNotFoundError(f"There is no {name} here; Debian's package of that name has it.")
    return found


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen, seconds: float = SECONDS_TO_START) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with direct.open(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(f"{url} doesn't answer; the folder has the logs.")


def main() -> int:
    """Run them until Ctrl+C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what they write goes here")
    parser.add_argument("--apps", type=int, default=3, help="how many copies of the app (default: 3)")
    parser.add_argument("--port", type=int, default=8080, help="nginx's (default: 8080)")
    parser.add_argument("--base-path", default="", help="a path below which everything is, such as headsup")
    parser.add_argument("--redis", action="store_true", help="start Redis too, for rooms")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Replicas(
            options.folder, options.apps, options.port, redis=options.redis, base_path=options.base_path
        ) as replicas:
            replicas.start_all()
            print(f"{options.apps} copies of the app answer at port {options.port}.", flush=True)
            while True:
                time.sleep(1)
                replicas.restart_ended()
    except (OSError, TimeoutError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
