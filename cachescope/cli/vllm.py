"""Before vLLM is started: whether its environment would lead it to a folder of a shipped torch_compile_cache.

    cachescope vllm ~/.cache/vllm
    cachescope vllm shipped/torch_compile_cache --env pod.env

Every variable that vLLM counts is read as vLLM reads it, and held against cache_key_factors.json in each folder. Neither vLLM
nor a GPU is needed. The configuration, the traced files and the machine are not known before a start: vLLM keeps their hashes.

exit status: 0 nothing that is known keeps a start from a folder, 1 a source could not be read, 2 wrong usage, 3 no folder
would be used, or that is not known of any
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import Final

from cachescope.cli.arguments import add_source_arguments
from cachescope.cli.output import write_answer
from cachescope.errors import telling

_NO_FOLDER: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a VLLM_CACHE_ROOT, torch_compile_cache, or a folder of it"
    )
    told = "the environment of the start, as NAME=VALUE lines; by default that of this process"
    parser.add_argument("--env", metavar="FILE", help=told)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.answers.vllm import VllmStart
    from cachescope.cli.sources import read_given
    from cachescope.report.vllm import prospect_lines

    environment = os.environ if args.env is None else _environment(args.env)
    found = VllmStart.of(read_given(args, args.paths), environment)
    write_answer(
        args, lambda: {"may_hit": found.may_hit, **asdict(found)}, lambda: list(prospect_lines(found))
    )
    return 0 if found.may_hit else _NO_FOLDER


def _environment(path: str) -> dict[str, str]:
    with telling(path), open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    pairs = (line.removeprefix("export ").partition("=") for line in lines if not line.startswith("#"))
    return {name: value for name, is_set, value in pairs if is_set}
