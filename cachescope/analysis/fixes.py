"""What could be set so that a field of a key has its earlier value: candidates, none of them tried yet."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from cachescope.analysis.differences import is_reordered
from cachescope.catalogue.facts import field_facts, option_name
from cachescope.components import Detail
from cachescope.details import HashDetails
from cachescope.keys.key_fields import matmul_settings
from cachescope.keys.printed_values import literal_value, printed_value

VARIABLE: Final = "variable"
ATTRIBUTE: Final = "attribute"
OPTION: Final = "option"
CALL: Final = "call"

Kind = Literal["variable", "attribute", "option", "call"]


class Setting(NamedTuple):
    """One setting.

    Attributes
    ----------
    kind : {"variable", "attribute", "option", "call"}
        A variable of the environment, an attribute such as an option of torch's config, an option of
        ``torch.compile(options=…)``, or a function to call.
    name : str
        The variable, the dotted name of the attribute or function, or the option.
    value : str or None
        The value of the variable, None to unset it; else a Python literal. For a call, a dictionary of its arguments,
        with positional ones under the empty text.
    """

    kind: Kind
    name: str
    value: str | None

    @property
    def code(self) -> str:
        """The line that sets it: for a shell, or in Python."""
        if self.kind == VARIABLE and self.value is not None:
            return f"export {self.name}={shlex.quote(self.value)}"
        if self.kind == VARIABLE:
            return f"unset {self.name}"
        if self.kind == ATTRIBUTE:
            return f"{self.name} = {self.value}"
        if self.kind == OPTION:
            return f'torch.compile(…, options={{"{self.name}": {self.value}}})'
        return f"{self.name}({self.value})"

    @property
    def where(self) -> str:
        """Where that line belongs."""
        if self.kind == VARIABLE:
            return "in the environment"
        if self.kind == CALL:
            return "at the start, in place of other calls"
        return "where it is compiled" if self.kind == OPTION else "just before the first compile"


Way = tuple[Setting, ...]
"""Settings that belong together."""

HASH_SEED: Final = "PYTHONHASHSEED"
HASH_SEED_WAY: Final[Way] = (Setting(VARIABLE, HASH_SEED, "0"),)
"""It fixes the order of sets. A process without it has an order of its own, which no other process has."""
_CONFIG: Final = re.compile(
    r"(?P<module>inductor_config|inductor_config_comms)\[(?P<option>[A-Za-z_][\w.]*)\]"
)
_DTYPE: Final = re.compile(r"torch\.b?float\d+")
_FILL: Final = "torch.utils.deterministic.fill_uninitialized_memory"


def ways_to_set(
    details: HashDetails, stored: Detail, now: Detail, environment: Mapping[str, str]
) -> Sequence[Way]:
    """The ways to give a field its stored value, the smallest change first; none if that value is not known.

    Examples
    --------
    >>> from cachescope.keys.detail_hash import detail_hash
    >>> on, off = (Detail("inductor_config[max_autotune]", detail_hash(x), str(x)) for x in (True, False))
    >>> ways = ways_to_set(HashDetails(), off, on, {"TORCHINDUCTOR_MAX_AUTOTUNE": "1"})
    >>> [[one.code for one in way] for way in ways]
    ... # doctest: +NORMALIZE_WHITESPACE
    [['unset TORCHINDUCTOR_MAX_AUTOTUNE'], ['torch._inductor.config.max_autotune = False'],
     ['torch.compile(…, options={"max_autotune": False})']]
    """
    if is_reordered(stored.value_text, now.value_text):
        return () if environment.get(HASH_SEED) == "0" else (HASH_SEED_WAY,)
    if (option := _CONFIG.fullmatch(stored.field)) is not None:
        return _option(option, stored, environment)
    if stored.field == "default_dtype":
        # torch prints the dtype itself, which is no literal.
        name = stored.value_text
        return ((Setting(CALL, "torch.set_default_dtype", name),),) if _DTYPE.fullmatch(name) else ()
    if options := details.changed_options(stored, now):
        return _functorch(options)
    known = _OF_FIELD.get(stored.field)
    return () if known is None else known(printed_value(stored), printed_value(now))


def _option(option: re.Match[str], stored: Detail, environment: Mapping[str, str]) -> Sequence[Way]:
    facts = field_facts(stored.field)
    # Where a variable is set, the smallest change is to unset it.
    named = facts.environment if facts is not None else ()
    ways = [(Setting(VARIABLE, name, None),) for name in named if name in environment]
    value = printed_value(stored)
    if value is not NotImplemented:
        ways.append((Setting(ATTRIBUTE, option_name(option["module"], option["option"]), repr(value)),))
        if option["module"] == "inductor_config":
            ways.append((Setting(OPTION, option["option"], repr(value)),))
    return ways


def _functorch(options: Sequence[tuple[str, str, str]]) -> Sequence[Way]:
    try:
        values = {name: repr(literal_value(old)) for name, old, _ in options}
    except ValueError:
        # An option that the stored torch lacks.
        return ()
    if not all(map(str.isidentifier, values)):
        # A line to copy is made of it, and a snapshot may come from anywhere.
        return ()
    of_config = (Setting(ATTRIBUTE, f"torch._functorch.config.{name}", old) for name, old in values.items())
    return (tuple(of_config),)


def _threads(stored: object, now: object) -> Sequence[Way]:
    if type(stored) is not int:
        return ()
    variable = Setting(VARIABLE, "OMP_NUM_THREADS", f"{stored}")
    return (variable,), (Setting(CALL, "torch.set_num_threads", f"{stored}"),)


def _tag(stored: object, now: object) -> Sequence[Way]:
    if not isinstance(stored, str):
        return ()
    variable = Setting(VARIABLE, "TORCH_COMPILE_CACHE_KEY_TAG", stored or None)
    return (variable,), (Setting(ATTRIBUTE, "torch.compiler.config.cache_key_tag", repr(stored)),)


def _determinism(stored: object, now: object) -> Sequence[Way]:
    before, after = _flags(stored), _flags(now)
    if len(before) != 3 or len(after) != 3:
        return ()
    settings = []
    if before[:2] != after[:2]:
        only_warn = ", warn_only=True" if before[1] else ""
        settings.append(Setting(CALL, "torch.use_deterministic_algorithms", f"{before[0]}{only_warn}"))
    if before[2] != after[2]:
        settings.append(Setting(ATTRIBUTE, _FILL, f"{before[2]}"))
    return (tuple(settings),)


def _flags(value: object) -> tuple[bool, ...]:
    return value if isinstance(value, tuple) and all(isinstance(one, bool) for one in value) else ()


def _matmul(stored: object, now: object) -> Sequence[Way]:
    names = matmul_settings(stored)
    if not isinstance(stored, tuple) or not isinstance(now, tuple) or not 0 < len(names) == len(now):
        return ()
    sides = zip(names, stored, now, strict=True)
    changed = [Setting(ATTRIBUTE, name, repr(old)) for name, old, new in sides if old != new]
    return (tuple(changed),) if changed else ()


_OF_FIELD: Final[dict[str, Callable[[object, object], Sequence[Way]]]] = {
    "cpp_runtime_thread_count": _threads,
    "cache_key_tag": _tag,
    "deterministic_algorithms_settings": _determinism,
    "cuda_matmul_settings": _matmul,
}
