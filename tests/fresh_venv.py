"""A virtual environment of its own, and a copy of the checkout as a user gets it, for what has to be installed."""

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.programs import ran

ROOT = Path(__file__).parent.parent
_SHIPPED = ("cachescope", "notebooks", "binder", "pyproject.toml", "README.md", "LICENSE")
# What would make a process look into this checkout or this environment instead of its own.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "JUPYTER_PATH")


@dataclass(frozen=True, slots=True)
class FreshVenv:
    """An environment, and the folder in which its commands run."""

    folder: Path
    where: Path

    def run(self, command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, found as a shell would find it."""
        found = shutil.which(command, path=str(self.folder / "bin")) or command
        return ran([found, *arguments], self.environment(), status=None, cwd=self.where)

    def environment(self) -> dict[str, str]:
        """The variables of its commands."""
        kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        path = f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"
        return kept | {"PATH": path, "VIRTUAL_ENV": str(self.folder)}

    def install(self, *arguments: str | Path) -> None:
        """Install with the pip that runs the tests, so that the environment needs none."""
        python = str(self.folder / "bin" / "python")
        # Bytecode of all that JupyterLab brings is slower to make than what is needed of it.
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
        ran([*pip, "--disable-pip-version-check", *arguments], self.environment(), cwd=self.where)


def fresh_venv(folder: Path, where: Path, *, with_pip: bool = False) -> FreshVenv:
    """Make an environment in a folder."""
    venv.create(folder, with_pip=with_pip, symlinks=True)
    return FreshVenv(folder, where)


def checkout(folder: Path) -> Path:
    """Copy what is in the repository, without what this checkout has besides."""
    for name in _SHIPPED:
        source = ROOT / name
        if source.is_dir():
            without = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
            shutil.copytree(source, folder / name, ignore=without)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    return folder
