"""A JupyterLab on loopback with one notebook of one cell, opened in the chromium of the system.

Nothing here waits on a clock that a busy machine breaks: a step has what a whole test has, minus the time to say which it was.
Nothing that belongs to the user is read or written: settings, workspaces and configuration are in a folder of its own.
"""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
LAB = Path(sys.executable).parent / "jupyter-lab"
PATIENCE_MS = 300_000
_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update",
]  # fmt: skip
_SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Cells out of view are drawn too, so that what a test looks for is there.
    "notebook-extension/tracker": {"autoStartDefaultKernel": True, "windowingMode": "none"},
}
_READY = """async () => {
  const app = window.jupyterapp; await app.restored; app.shell.collapseLeft();
  const notebook = app.shell.currentWidget; await notebook.context.ready;
  await notebook.sessionContext.ready; await notebook.sessionContext.session.kernel.info;
  await app.commands.execute('notebook:run-all-cells'); }"""


def missing() -> str:
    """What a browser test lacks, in one line; empty where it has all."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is missing: pip install playwright"
    if CHROMIUM is None:
        return "chromium is missing: apt-get install chromium"
    return "" if LAB.exists() else "JupyterLab is missing: pip install jupyterlab"


@dataclass
class Opened:
    """The page, what its console called an error, and requests that would have left the machine."""

    page: Any
    errors: list[str] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; playwright has one at a time."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, headless=True, args=_FLAGS)
        browser.new_context = _patient(browser.new_context)
        browser.new_page = _patient(browser.new_page)
        yield browser
        browser.close()


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(**options: Any) -> Any:
        page_or_context = make(**options)
        page_or_context.set_default_timeout(PATIENCE_MS)
        return page_or_context

    return made


@contextmanager
def notebook(
    browser: Any, folder: Path, code: str, theme: str = "JupyterLab Light", width: int = 1400
) -> Iterator[Opened]:
    """Run one cell in JupyterLab and look at it."""
    with lab(folder, code, theme) as url:
        context = browser.new_context(viewport={"width": width, "height": 1600}, service_workers="block")
        opened = Opened(context.new_page())
        opened.page.on("console", lambda m: opened.errors.append(m.text) if m.type == "error" else None)
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        home = (url, url.replace("http", "ws"), "blob:", "data:")
        opened.page.on("request", lambda r: None if r.url.startswith(home) else opened.beyond.append(r.url))
        opened.page.goto(f"{url}/doc/tree/one.ipynb?reset")
        opened.page.wait_for_selector(".jp-Notebook .jp-Cell")
        opened.page.evaluate(_READY)
        yield opened
        context.close()


@contextmanager
def lab(folder: Path, code: str, theme: str = "JupyterLab Light") -> Iterator[str]:
    """The address of a JupyterLab whose notebook `one.ipynb` has this cell."""
    root = folder / "root"
    root.mkdir()
    cell = {"cell_type": "code", "execution_count": None, "id": "one", "metadata": {}, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": [cell | {"source": code}], "metadata": {"kernelspec": kernel}}
    (root / "one.ipynb").write_text(json.dumps(content | {"nbformat": 4, "nbformat_minor": 5}))
    settings = _SETTINGS | {"apputils-extension/themes": {"theme": theme}}
    for name, values in settings.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    homes = {
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_DATA_DIR": "data",
        "IPYTHONDIR": "ipython",
    }  # fmt: skip
    env = os.environ | {name: str(folder / place) for name, place in homes.items()}
    env["PATH"] = f"{LAB.parent}{os.pathsep}{env['PATH']}"
    port = _free_port()
    with (folder / "lab.log").open("w") as log:
        lab = subprocess.Popen(
            _command(port, root), env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait(f"http://127.0.0.1:{port}", lab, folder / "lab.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(lab.pid, signal.SIGTERM)
            lab.wait(30)


_OPTIONS = (
    "--no-browser --allow-root --ServerApp.port_retries=0 --ServerApp.ip=127.0.0.1 --IdentityProvider.token= "
    "--ServerApp.password= --ServerApp.disable_check_xsrf=True --LabApp.expose_app_in_browser=True "
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.extension_manager=readonly"
)


def _command(port: int, root: Path) -> list[str]:
    return [str(LAB), *_OPTIONS.split(), f"--ServerApp.port={port}", f"--ServerApp.root_dir={root}"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, lab: subprocess.Popen[bytes], log: Path) -> None:
    while lab.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api/status", timeout=10)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text()[-2000:]}")
