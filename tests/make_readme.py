"""Makes the parts of the README that are printed by cachescope itself: `make readme` writes them anew."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
sys.path.append(str(ROOT / "docs"))

from outputs import output_of  # noqa: E402 - found by the line above

# A comment says which lines are shown; the command is the first line of the block, as it is typed.
OUTPUT = re.compile(
    r"<!-- printed(?:, lines (?P<lines>\d+-\d+))? -->\n```console\n\$ (?P<command>[^\n]*)\n(?P<shown>.*?)\n?```",
    re.DOTALL,
)


def made(readme: str) -> str:
    """The README with its printed parts as they are now."""

    def shown_anew(block: re.Match[str]) -> str:
        head = block[0][: block.start("shown") - block.start()]
        return f"{head}{output_of(block['command'], block['lines'] or '')}\n```"

    return OUTPUT.sub(shown_anew, readme)


if __name__ == "__main__":
    README.write_text(made(README.read_text()))
