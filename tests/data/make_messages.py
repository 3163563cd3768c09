"""Make cachescope/catalogue/messages.json: what each release of vLLM, SGLang, Triton and torch says in its logs of its caches, read off the sources.

    python tests/data/make_messages.py vllm 0.6.5=FOLDER … 0.33.0=FOLDER
    python tests/data/make_messages.py sglang 0.5.3.post2=FOLDER … 0.5.23=FOLDER
    python tests/data/make_messages.py triton 3.0.0=FOLDER … 3.9.0=FOLDER
    python tests/data/make_messages.py torch 2.4.1=FOLDER … 2.15.0=FOLDER

Each FOLDER holds the Python files of one release: vLLM's of its source archive (``vllm-0.33.0.tar.gz`` of the package index), SGLang's and
Triton's of a wheel, torch's of a wheel for macOS. Read are the calls of loggers in the files of `message_sources/known.py`, which says what each message means, and errors that vLLM
raises there. The script stops at a message above DEBUG whose meaning is not said, and at one whose meaning is said and that no release has.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from message_sources.known import KNOWN, SCOPES, Scope

TARGET: Final = Path(__file__).parents[2] / "cachescope" / "catalogue" / "messages.json"
_LEVELS: Final = ("debug", "info", "warning", "error", "exception", "critical")


def said(trees: dict[str, ast.Module], scope: Scope) -> Iterator[tuple[str, str, str]]:
    """File, level and text of each message; ``%s`` stands for what is put in."""
    parameters: dict[str, tuple[int, str, str]] = {}
    for file, tree in trees.items():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            names = [argument.arg for argument in function.args.args]
            for level, call in _calls(function):
                if isinstance(call.args[0], ast.Name) and call.args[0].id in names:
                    parameters[function.name] = names.index(call.args[0].id), file, level
    for file, tree in trees.items():
        for level, call in _calls(tree):
            for text in _texts(call.args[0], tree):
                yield file, level, _without_tag(text, call)
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = _text(node.exc.args[0])
                if text is not None and text.startswith(scope.raised):
                    yield file, "raised", text
            # The text may be given to a function that logs it.
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            at, of_file, level = parameters.get(name, (0, "", ""))
            if of_file and at < len(node.args) and (text := _text(node.args[at])) is not None:  # type: ignore[attr-defined]
                yield of_file, level, text.removeprefix("%s")


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            level = node.func.attr.removesuffix("_once")
            logger = ast.unparse(node.func.value).lower()
            if level in _LEVELS and ("log" in logger or logger == "metrics"):
                yield level, node


def _texts(node: ast.expr, tree: ast.Module) -> Iterator[str]:
    """The text, or the one that was last given to the variable that it is, or is its default."""
    if (text := _text(node)) is not None:
        yield text
    elif isinstance(node, ast.Name):
        given: dict[int, str] = {}
        for one in ast.walk(tree):
            if isinstance(one, ast.Assign | ast.AugAssign) and one.lineno < node.lineno:
                target = one.targets[0] if isinstance(one, ast.Assign) else one.target
                if ast.unparse(target) == node.id:
                    given[one.lineno] = ("" if isinstance(one, ast.Assign) else "\0") + (
                        _text(one.value) or "%s"
                    )
            if isinstance(one, ast.arguments):
                for argument, default in zip(reversed(one.args), reversed(one.defaults), strict=False):
                    if argument.arg == node.id and (text := _text(default)):
                        yield text.removeprefix("%s")
        # What begins with a zero byte was added to the text before.
        lasts = "\1".join(given[at] for at in sorted(given)).replace("\1\0", "")
        if lasts:
            yield lasts.rpartition("\1")[2]


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "%s" for part in node.values)
    if isinstance(node, ast.BinOp):
        left, right = _text(node.left), _text(node.right)
        if isinstance(node.op, ast.Mod):
            return left
        return None if left is None or right is None else left + right
    return None


def _without_tag(text: str, call: ast.Call) -> str:
    """Without the part of the model, which is a tag before the message (vLLM 0.32)."""
    is_tagged = len(call.args) > 1 and "prefix" in ast.unparse(call.args[1])
    return text.removeprefix("%s") if is_tagged else text


def main() -> None:
    """Read the releases in the order in which they are given, the oldest first."""
    of, *places = sys.argv[1:]
    scope, known = SCOPES[of], KNOWN[of]
    versions = [place.partition("=")[0] for place in places]
    rows: dict[str, dict[str, Any]] = {}
    for version, folder in (place.split("=", 1) for place in places):
        files = sorted(file for pattern in scope.files for file in Path(folder).glob(pattern))
        trees = {file.relative_to(folder).as_posix(): ast.parse(file.read_text()) for file in files}
        for file, level, text in said(trees, scope):
            if level in scope.levels:
                row = rows.setdefault(text, {"levels": [], "files": [], "releases": []})
                for name, value in (("levels", level), ("files", file), ("releases", version)):
                    row[name] += [value] * (value not in row[name])
    unsaid = [text for text, row in rows.items() if row["levels"] != ["debug"] and text not in known]
    if unsaid or known.keys() - rows.keys():
        raise SystemExit(
            "\n".join(
                [
                    "say in known.py what these mean:",
                    *map(repr, unsaid),
                    "no release has:",
                    *map(repr, known.keys() - rows.keys()),
                ]
            )
        )
    messages = [
        {
            "text": text, "means": known.get(text, ""), "levels": sorted(row["levels"]), "files": sorted(row["files"]),
            "first": row["releases"][0], "last": row["releases"][-1],
        }
        for text, row in sorted(rows.items())
    ]  # fmt: skip
    table = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    table[of] = {"releases": versions, "messages": messages}
    lines = [
        f'{json.dumps(name)}: {{"releases": {json.dumps(one["releases"])}, "messages": [\n'
        + ",\n".join(json.dumps(message, ensure_ascii=False) for message in one["messages"])
        + "\n]}"
        for name, one in sorted(table.items())
    ]
    TARGET.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
