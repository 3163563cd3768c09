"""Transformers from public model definitions, sized down, with random weights: nothing is downloaded."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tests.capture.programs.registry import program

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


@program
def gpt2_training() -> None:
    trained("gpt2")


@program
def gpt2_inference() -> None:
    inferred("gpt2")


@program
def llama_training() -> None:
    trained("llama")


@program
def llama_inference() -> None:
    inferred("llama")


@program
def bert_training() -> None:
    trained("bert")


@program
def bert_inference() -> None:
    inferred("bert")


@program
def vit_training() -> None:
    trained("vit")


@program
def vit_inference() -> None:
    inferred("vit")
