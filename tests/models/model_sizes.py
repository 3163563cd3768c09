"""Real models sized down, with random weights, and what of them can be changed: nothing is ever downloaded.

A model is a function of the `Size` that returns the module and a call's inputs. They stand in model_transformers.py,
model_timm.py and model_torchvision.py, each imported only where one of its models is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

# torchvision registers meta kernels for these operators at import, and fails where its C++ part is built for another
# torch (PyPI has no wheel of it for the CPU build). No model here calls them.
_MISSING_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _name):
        _MISSING_OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


@dataclass(frozen=True, slots=True)
class Size:
    """What of a model and its inputs can be changed between two processes."""

    batch: int = 2
    length: int = 8
    hidden: int = 32
    layers: int = 1
    activation: str = "relu"
    attention: str = "sdpa"
    pixels: int = 32


Made = tuple[torch.nn.Module, dict[str, Any]]


def made(name: str, size: Size) -> Made:
    """Make the model and its inputs; those of timm and torchvision are called so, all others are of transformers."""
    library = {"timm": "timm", "tv": "torchvision"}.get(name.partition("_")[0], "transformers")
    maker: Callable[[Size], Made] = getattr(importlib.import_module(f"model_{library}"), name)
    return maker(size)


def pictures(size: Size) -> torch.Tensor:
    return torch.randn(size.batch, 3, size.pixels, size.pixels)
