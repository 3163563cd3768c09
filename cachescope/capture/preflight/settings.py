"""Settings that a pre-flight tries, whatever the program sets itself.

Functions are called once torch is imported, and do nothing when the program calls them: what they set is checked when a
graph runs as well. Attributes are set once, where torch begins to compile the first graph: what the program sets later
holds, as it will in the real run. Options are set for every graph.
"""

from __future__ import annotations

import ast
import contextvars
import importlib
import json
from typing import Any, Final

from cachescope.capture.preflight.cache_folder import ours

SETTINGS: Final = "CACHESCOPE_PREFLIGHT_SETTINGS"
"""The variable that holds them, as a JSON list of [kind, name, Python literal]; those of the environment are not among them."""

_is_within: contextvars.ContextVar[bool] = contextvars.ContextVar("cachescope_settings", default=False)


def patch_torch(module: Any, replace: Any) -> None:
    """Call what is to be called, in place of the program."""
    for kind, name, arguments in _settings():
        if kind == "call":
            owner, function = _owner_of(name)
            _call(getattr(owner, function), arguments)
            replace(owner, function, lambda *args, **kwargs: None)


def patch_compile_fx(module: Any, replace: Any) -> None:
    """Set the others where torch begins to compile a graph (torch/_inductor/compile_fx.py, `compile_fx`)."""
    options = {name: ast.literal_eval(literal) for kind, name, literal in _settings() if kind == "option"}
    attributes = [(name, literal) for kind, name, literal in _settings() if kind == "attribute"]
    if not options and not attributes:
        return
    compiled_by_torch = module.compile_fx

    def compile_fx(*args: Any, config_patches: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        # torch calls it again, with the options of the program in its config.
        if _is_within.get():
            return compiled_by_torch(*args, config_patches=config_patches, **kwargs)
        while attributes:
            name, literal = attributes.pop(0)
            owner, attribute = _owner_of(name)
            setattr(owner, attribute, ast.literal_eval(literal))
        token = _is_within.set(True)
        try:
            return compiled_by_torch(
                *args, config_patches={**(config_patches or {}), **options} or None, **kwargs
            )
        finally:
            _is_within.reset(token)

    replace(module, "compile_fx", compile_fx)


def _settings() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = json.loads(ours.get(SETTINGS, "[]"))
    return found


def _call(function: Any, arguments: str) -> None:
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    function(*map(_value, call.args), **{one.arg: _value(one.value) for one in call.keywords if one.arg})


def _value(argument: ast.expr) -> Any:
    if isinstance(argument, ast.Attribute):  # a dtype, as torch.float32
        return getattr(importlib.import_module("torch"), argument.attr)
    return ast.literal_eval(argument)


def _owner_of(name: str) -> tuple[Any, str]:
    """The module or object that has what a dotted name names, and the last part of the name."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1]
    raise ModuleNotFoundError(name)
