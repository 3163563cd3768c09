"""The rows of the catalogue for one version of torch."""

from collections.abc import Iterator
from typing import Any

from field_sources.affects import affects, basis
from field_sources.configs import Option, read_options
from field_sources.details import (
    detail_attributes,
    graph_arguments,
    ignored_prefixes,
    mode_options,
    system_parts,
)
from field_sources.known import ATTRIBUTES, GRAPH_ARGUMENTS, SYSTEM_PARTS, Known
from field_sources.reads import options_read
from field_sources.sources import Sources

INDUCTOR = "torch._inductor.config"
COMMS = "torch._inductor.config_comms"
# Modules whose options are named in `known`.
_CONFIGS = (INDUCTOR, COMMS, "torch._functorch.config", "torch.compiler.config")
_LONGEST_DEFAULT = 120
# Made of options and other parts: their rows are made apart.
_PARTED = {"inductor_config", "inductor_config_comms", "fx_kwargs", "system_info"}

Row = dict[str, Any]


class Rows:
    """Makes the rows of one version."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._options = {config: self._read(config) for config in _CONFIGS}
        self._readers = {
            config: options_read(sources, config, self._options[config]) for config in (INDUCTOR, COMMS)
        }
        self._credit_aliases()

    def all(self) -> dict[str, Row]:
        """Every row by its field."""
        attributes = detail_attributes(self._sources)
        found: dict[str, Row] = {}
        for name in attributes:
            if name not in _PARTED:
                found[ATTRIBUTES[name].field] = self._known(ATTRIBUTES[name])
        for name, in_key in graph_arguments(self._sources).items():
            found[f"fx_kwargs[{name}]"] = {**self._known(GRAPH_ARGUMENTS[name]), "in_key": in_key}
        for name in system_parts(self._sources):
            found[f"system_info[{name}]"] = self._known(SYSTEM_PARTS[name])
        found |= self._inductor_options()
        if "inductor_config_comms" in attributes:
            found |= {f"inductor_config_comms[{o.name}]": self._option(COMMS, o) for o in self._of(COMMS)}
        return found

    def _read(self, config: str) -> dict[str, Option]:
        text = self._sources.texts.get(config.replace(".", "/") + ".py")
        return read_options(text) if text else {}

    def _of(self, config: str) -> Iterator[Option]:
        yield from self._options[config].values()

    def _credit_aliases(self) -> None:
        """Reading an alias is reading what it stands for."""
        readers = self._readers[INDUCTOR]
        for option in self._of(INDUCTOR):
            target = (option.alias or "").removeprefix(INDUCTOR + ".")
            if option.alias and target in self._options[INDUCTOR]:
                readers[target] = sorted({*readers.get(target, []), *readers.get(option.name, [])})

    def _inductor_options(self) -> dict[str, Row]:
        ignored = ignored_prefixes(self._sources)
        modes = mode_options(self._sources)
        found = {}
        for option in self._of(INDUCTOR):
            in_key = option.alias is None and not option.name.startswith(ignored)
            found[f"inductor_config[{option.name}]"] = {
                **self._option(INDUCTOR, option),
                "in_key": in_key,
                "option": _compile_option(option, modes.get(option.name, [])),
                "context_forms": ["inductor_configs"] if in_key else [],
            }
        return found

    def _option(self, config: str, option: Option) -> Row:
        readers = self._readers[config].get(option.name, [])
        judged = affects(option.name, readers)
        return {
            "in_key": True,
            "python_name": f"{config}.{option.name}",
            "environment": list(option.environment),
            "option": None,
            "default": _shortened(option.default) if option.alias is None else None,
            "meaning": f"another name of {option.alias}" if option.alias else option.meaning,
            "context_forms": [],
            "affects": judged,
            "basis": basis(option.name, judged),
            "read_by": readers,
        }

    def _known(self, known: Known) -> Row:
        row: Row = {
            "in_key": True, "python_name": known.python_name, "environment": list(known.environment),
            "option": known.option, "default": None, "meaning": known.meaning,
            "context_forms": list(known.forms), "affects": known.affects, "basis": known.basis, "read_by": [],
        }  # fmt: skip
        return row | self._facts_of_option(known)

    def _facts_of_option(self, known: Known) -> Row:
        """What a field takes from the option that sets it."""
        config, option = self._option_named(known.python_name)
        if option is None:
            return {}
        facts: Row = {
            "environment": [*option.environment, *known.environment],
            "default": _shortened(option.default),
        }
        if config == INDUCTOR:
            own = self._option(config, option)
            facts |= {"option": _compile_option(option, mode_options(self._sources).get(option.name, []))}
            facts |= {"read_by": own["read_by"]}
            if known.basis is None:
                facts |= {"affects": own["affects"], "basis": own["basis"]}
        return facts

    def _option_named(self, python_name: str | None) -> tuple[str, Option | None]:
        for config in _CONFIGS:
            option = self._options[config].get((python_name or "").removeprefix(config + "."))
            if option and python_name == f"{config}.{option.name}":
                return config, option
        return "", None


def _compile_option(option: Option, modes: list[str]) -> str | None:
    if option.alias or option.name == "TYPE_CHECKING" or option.name.startswith("_"):
        return None
    ways = [f'options={{"{option.name}": …}}', *(f'mode="{mode}"' for mode in modes)]
    return " or ".join(ways)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_DEFAULT else text[: _LONGEST_DEFAULT - 1] + "…"
