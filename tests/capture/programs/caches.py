"""Programs that use the caches in other ways: bypassed, switched off, asked again."""

import os
from functools import partial
from unittest import mock

import torch
import torch._functorch.config
import torch._inductor.config

from tests.capture.programs.registry import Program, mlp_model, program
from tests.data import bypass_programs

BYPASSED: dict[str, Program] = {
    f"{name}_bypassed": partial(function, False) for name, function in bypass_programs.PROGRAMS.items()
}
"""Programs of which torch bypasses a cache, one for each of its reasons."""


def train_twice() -> None:
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(mlp_model())(torch.randn(4, 8)).sum().backward()


@program
def twice() -> None:
    """The same graph under two keys of Dynamo: the second finds what the first stored."""
    train_twice()


@program
def other_directory() -> None:
    """The second compile looks where the first has stored nothing."""
    train_twice()
    other = os.path.join(os.environ["PREFLIGHT_PROGRAM_CACHE"], "other")
    with mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=other):
        train_twice()


@program
def freezing() -> None:
    compiled = torch.compile(mlp_model().eval())
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        compiled(torch.randn(4, 8))


@program
def pass_without_uuid() -> None:
    with torch._inductor.config.patch(post_grad_custom_post_pass=lambda graph: None):
        train_twice()


@program
def caches_off() -> None:
    with torch._inductor.config.patch(force_disable_caches=True):
        torch.compile(mlp_model())(torch.randn(4, 8))


@program
def fx_cache_alone() -> None:
    with torch._functorch.config.patch(enable_autograd_cache=False):
        train_twice()


@program
def bundled() -> None:
    with torch._functorch.config.patch(bundled_autograd_cache=True):
        train_twice()
