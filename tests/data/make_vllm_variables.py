"""Write cachescope/catalogue/vllm_variables.json: which environment variables vLLM counts in the names of its folders.

    python tests/data/make_vllm_variables.py 0.13.0=FOLDER 0.14.0=FOLDER … 0.33.0=FOLDER

Each FOLDER is an unpacked wheel or source archive. Read is, in ``vllm/envs.py``, ``environment_variables`` but for the ``ignored_factors`` of
``compile_factors``, and the variables of Ray that it adds. How a variable is read is noted where that is one of a few plain forms, as
the form, the text that stands for an unset variable, and the texts that are true; None where a function of vLLM's reads it.
vLLM sets some variables itself, as for a platform: of these the texts are noted, None for what is computed.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TARGET: Final = Path(__file__).parents[2] / "cachescope" / "catalogue" / "vllm_variables.json"


def counted(source: str) -> set[str]:
    """The variables that a release counts."""
    found = dict(_assigned(ast.parse(source)))
    return (found["environment_variables"] - found["ignored_factors"]) | found["ray_noset_env_vars"]


_GET: Final = r"os\.(?:getenv|environ\.get)\('NAME'(?:, (?P<unset>None|'[^']*'))?\)"
_FORMS: Final = {
    "switch": rf"bool\(int\({_GET}\)\)", "int": rf"(?:int|maybe_convert_int)\({_GET}\)", "float": rf"float\({_GET}\)", "text": _GET,
    "lower": rf"{_GET}\.lower\(\)", "upper": rf"{_GET}\.upper\(\)", "is": rf"{_GET} == (?P<true>'[^']*')",
    "is_one_of": rf"{_GET}\.lower\(\) (?:in|==) (?P<true>\([^()]*\)|'[^']*')",
    "bare_is_one_of": rf"{_GET}\.strip\(\)\.lower\(\) (?:in|==) (?P<true>\([^()]*\)|'[^']*')",
}  # fmt: skip
_CHOICES: Final = re.compile(
    r"env_with_choices\('NAME', (?P<unset>None|'[^']*'), \[[^\]]*\](?:, case_sensitive=False)?\)"
)
_IF_SET: Final = re.compile(
    r"(?P<form>int|bool\(int)\(os\.(?:getenv|environ).*\) if 'NAME' in os\.environ else None"
)


def read_as(source: str) -> dict[str, list[object] | None]:
    """How a release reads each variable."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "environment_variables":
            assert isinstance(node.value, ast.Dict)
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                assert isinstance(key, ast.Constant)
                body = value.body if isinstance(value, ast.Lambda) else value
                found[key.value] = _form(ast.unparse(body).replace(repr(key.value), "'NAME'"))
    return found


_SETS: Final = re.compile(r"environ\b|envs\.\w+ = ")


def set_by_vllm(folder: Path) -> dict[str, set[str | None]]:
    """The variables that vLLM sets in its own process, and to what."""
    found: dict[str, set[str | None]] = {}
    for path in (folder / "vllm").rglob("*.py"):
        text = path.read_text()
        # Parsing takes most of the time.
        for node in ast.walk(ast.parse(text)) if _SETS.search(text) else ():
            value: ast.expr
            match node:
                case (
                    ast.Assign(
                        targets=[ast.Subscript(value=where, slice=ast.Constant(value=str(name)))], value=value
                    )
                    | ast.Call(
                        func=ast.Attribute(attr="setdefault", value=where),
                        args=[ast.Constant(value=str(name)), value],
                    )
                ):
                    is_set = ast.unparse(where) in ("os.environ", "environ")
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="envs"), attr=name)]):
                    is_set, value = True, ast.Name("computed")
                case _:
                    continue
            if is_set:
                text = value.value if isinstance(value, ast.Constant) else None
                found.setdefault(name, set()).add(text if isinstance(text, str) else None)
    return found


def _form(text: str) -> list[object] | None:
    if match := _CHOICES.fullmatch(text):
        return ["text", ast.literal_eval(match["unset"])]
    if match := _IF_SET.fullmatch(text):
        return ["int" if match["form"] == "int" else "switch", None]
    for form, pattern in _FORMS.items():
        if match := re.fullmatch(pattern, text):
            said = [form, ast.literal_eval(match["unset"] or "None")]
            true = ast.literal_eval(match["true"]) if "true" in match.groupdict() else None
            return said if true is None else [*said, [true] if isinstance(true, str) else list(true)]
    return None


def _assigned(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The texts in each list, set or dict (of that its keys) that is assigned to a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value
            items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", None)
            if isinstance(target, ast.Name) and items is not None:
                yield target.id, {item.value for item in items if isinstance(item, ast.Constant)}


def main() -> None:
    """Read the releases in the order in which they are given, the oldest first."""
    versions = [argument.partition("=")[0] for argument in sys.argv[1:]]
    # Of each variable, the releases in a row that read it alike: the first, the last, and how.
    spans: dict[str, list[list[object]]] = {}
    own: dict[str, set[str | None]] = {}
    for at, argument in enumerate(sys.argv[1:]):
        folder = Path(argument.partition("=")[2])
        source = (folder / "vllm" / "envs.py").read_text()
        read = read_as(source)
        for name, texts in set_by_vllm(folder).items():
            own.setdefault(name, set()).update(texts)
        for name in counted(source):
            form = read.get(name, ["text", None])
            of_name = spans.setdefault(name, [])
            if of_name and of_name[-1][1:] == [versions[at - 1], form]:
                of_name[-1][1] = versions[at]
            else:
                of_name.append([versions[at], versions[at], form])
    rows = {name: [spans[name], sorted(own.get(name, ()), key=str)] for name in sorted(spans)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    TARGET.write_text(f'{{"releases": {json.dumps(versions)}, "variables": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
