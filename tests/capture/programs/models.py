"""Transformers from public model definitions, sized down, with random weights: nothing is downloaded."""

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tests.capture.programs.registry import PROGRAMS, Program

MODELS = Path(__file__).parents[2] / "models"


def made(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """A model of `tests/models/model_transformers.py` and the inputs of a call."""
    sys.path.insert(0, str(MODELS))
    sizes = import_module("model_sizes")
    model, inputs = sizes.made(name, sizes.Size(layers=2))
    return model, inputs


def trained(name: str) -> None:
    model, inputs = made(name)
    torch.compile(model.train())(**inputs)[0].square().mean().backward()


def inferred(name: str) -> None:
    model, inputs = made(name)
    with torch.no_grad():
        torch.compile(model.eval())(**inputs)


OPTIONS: dict[str, Program] = {
    "gpt2_training": partial(trained, "gpt2"), "gpt2_inference": partial(inferred, "gpt2"),
    "llama_training": partial(trained, "llama"), "llama_inference": partial(inferred, "llama"),
    "bert_training": partial(trained, "bert"), "bert_inference": partial(inferred, "bert"),
    "vit_training": partial(trained, "vit"), "vit_inference": partial(inferred, "vit"),
}  # fmt: skip
PROGRAMS |= OPTIONS
