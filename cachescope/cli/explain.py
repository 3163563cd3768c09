"""Explain why lookups missed: the changed fields, old and new value, and what it cost.

PATHs are TORCH_TRACE files, TORCH_LOGS text, cache directories, vLLM's torch_compile_cache and its logs, remote caches
(redis://HOST:PORT/DB), or directories and globs of files. Their kind is recognized by their content. With --key or
--lookup, one lookup is explained in full.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_baseline_argument, add_source_arguments, how_many
from cachescope.cli.output import write_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachescope.answers.explanation import Explanation
    from cachescope.json_types import JsonObject
    from cachescope.report.blocks import Block
    from cachescope.scope.scope import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--key", help="only the last miss of this key (its beginning is enough)")
    which.add_argument("--lookup", type=int, metavar="N", help="only this lookup")
    parser.add_argument("--causes", type=how_many, default=10, metavar="N", help="causes to show (10)")
    add_baseline_argument(parser)
    add_source_arguments(parser, "what to read")


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given

    scope = read_given(args, args.paths, args.baseline)
    which = args.key if args.key is not None else args.lookup
    explained = None if which is None else scope.explain(which)
    return write_answer(
        args, lambda: _as_json(scope, explained), lambda: _blocks(scope, explained, args.causes)
    )


def _as_json(scope: Scope, explained: Explanation | None) -> JsonObject:
    from cachescope.report.as_json import explain_object, explanation_object

    told = explain_object(scope)
    return told if explained is None else told | {"explanation": explanation_object(explained)}


def _blocks(scope: Scope, explained: Explanation | None, causes: int) -> Iterator[Block]:
    if explained is not None:
        from cachescope.report.explanation import explanation_blocks

        return explanation_blocks(explained)
    from cachescope.report.why_missed import answer_blocks

    return answer_blocks(scope, most=causes)
