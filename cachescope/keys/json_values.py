"""The JSON text that torch hashes, and how to name a value that JSON cannot represent.

torch hashes ``json.dumps(value, sort_keys=True)`` with json's default separators and ASCII
escapes. Only the standard library's json writes that text: orjson writes other bytes.
"""

from __future__ import annotations

import json

from cachescope.errors import CachescopeError


class UnsupportedValueError(CachescopeError, TypeError):
    """A value that cannot be hashed as torch hashes it.

    Attributes
    ----------
    path : str
        The path of the value, ``runtime_context[inductor_configs][name]``; empty for the
        value as a whole.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def sorted_json(value: object) -> str:
    """Return the JSON text torch hashes: keys sorted, default separators, ASCII.

    Mirrors ``json.dumps(…, sort_keys=True)`` in ``_isolation_key``
    (``torch/_inductor/runtime/caching/context.py``, 2.10 to 2.15) and in
    ``CacheKeyStrategy.key_from_json`` (``torch/_inductor/cache_key.py``, 2.13).

    >>> sorted_json({"b": None, "a": (1, 2.0)})
    '{"a": [1, 2.0], "b": null}'
    """
    try:
        return json.dumps(value, sort_keys=True)
    except TypeError as error:
        path = next(iter(json_ready(value)[1]), "")
        raise UnsupportedValueError(
            f"{path or 'the value'} cannot be written as JSON, so torch has no key for it: {error}", path
        ) from error
    except (ValueError, RecursionError) as error:
        raise UnsupportedValueError(f"the value cannot be written as JSON: {error}") from error


def json_ready(value: object) -> tuple[object, list[str]]:
    """Return a copy of `value` that JSON can represent, and the paths of values that became text.

    If the list is empty, `value` and its JSON round trip give torch the same text, and
    so the same key.

    >>> json_ready({"a": {"b": [1, 1j]}})
    ({'a': {'b': [1, '1j']}}, ['a[b][1]'])
    """
    kept_as_text: list[str] = []
    return _copy(value, "", kept_as_text), kept_as_text


def _copy(value: object, path: str, kept_as_text: list[str]) -> object:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        if not _keys_survive(value):
            kept_as_text.append(path)
        return {
            _key_text(key): _copy(item, f"{path}[{key}]" if path else str(key), kept_as_text)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_copy(item, f"{path}[{i}]", kept_as_text) for i, item in enumerate(value)]
    kept_as_text.append(path)
    return _text(value)


def _keys_survive(mapping: dict[object, object]) -> bool:
    """Whether torch's text of the keys is the same after a JSON round trip.

    ``{2: …, 10: …}`` is not: sorted as numbers by torch, as text when read back.
    """
    if all(type(key) is str for key in mapping):
        return True
    try:
        text = json.dumps(dict.fromkeys(mapping), sort_keys=True)
    except TypeError:
        return False
    return json.dumps(json.loads(text), sort_keys=True) == text


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (int, float)):
        return str(next(iter(json.loads(json.dumps({key: None})))))
    return repr(key)


def _text(value: object) -> str:
    """Return a text that identifies the value and is the same in the next process."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(_text, value)))})"
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return f"{getattr(value, '__module__', None) or 'builtins'}.{name}"
    return repr(value)
