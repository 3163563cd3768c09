"""The process that compiles and runs models of model_sizes.py: one after the other, each in one way of using it.

    model_programs.py bert:infer resnet:train --report steps/00_cold.json --set batch=3

Beside each program it writes what torch itself counted before and after, so that the tests can hold cachescope's
reading against torch's own numbers. Started by recording.py; needs torch and the extra `models`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.utils
import torch._functorch.config
import torch._inductor.config
from model_sizes import Size, made


@dataclass(frozen=True, slots=True)
class Settings:
    """How everything in this process is compiled and run."""

    dtype: str = "float32"
    mode: str = "default"
    dynamic: bool | None = False
    autocast: bool | None = None
    """None: as the way of using it says."""
    threads: int = 0
    epilogue_fusion: bool = True
    deterministic: bool = False
    tag: str = ""
    kernels: bool = False
    """Whether Inductor writes C++ kernels, as it does by default. A compiler takes most of the time of a process, and
    no key depends on it: without, every operator is called as eager mode would."""
    forget: bool = True
    """Whether torch forgets what it compiled after each program, so that its compile ids begin again."""


def counters() -> dict[str, dict[str, int]]:
    """Copy torch's counters without creating the groups that are absent (they live in a defaultdict)."""
    found = torch._dynamo.utils.counters
    return {group: dict(found[group]) for group in ("inductor", "aot_autograd") if group in found}


def compiled(model: Any, settings: Settings, **more: Any) -> Any:
    if settings.mode == "default" and not settings.epilogue_fusion:
        more = {"options": {"epilogue_fusion": False}} | more
    elif settings.mode != "default":
        more = {"mode": settings.mode} | more
    return torch.compile(model, **({"dynamic": settings.dynamic} | more))


def first_tensor(output: Any) -> torch.Tensor:
    """The tensor of an output that a loss is made of."""
    while not isinstance(output, torch.Tensor):
        output = next(iter(output.values() if isinstance(output, dict) else output))
    return output


def autocast(settings: Settings, by_default: bool) -> contextlib.AbstractContextManager[Any]:
    wanted = by_default if settings.autocast is None else settings.autocast
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=wanted)


# --- ways of using a model: each runs it once, compiled ---

Way = Callable[[Any, dict[str, Any], Settings], None]


def forward(within: Callable[[], Any] = torch.no_grad, is_autocast: bool = False, **options: Any) -> Way:
    """One forward of a model in eval mode."""

    def run(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
        with within(), autocast(settings, is_autocast):
            compiled(model.eval(), settings, **options)(**inputs)

    return run


infer = forward()


def channels_last(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    model = model.to(memory_format=torch.channels_last)
    inputs = {name: value.to(memory_format=torch.channels_last) for name, value in inputs.items()}
    infer(model, inputs, settings)


def train(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """Two steps; the optimizer runs as it is."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run = compiled(model.train(), settings)
    for _ in range(2):
        with autocast(settings, False):
            loss = first_tensor(run(**inputs)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def amp_train(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    wanted = True if settings.autocast is None else settings.autocast
    train(model, inputs, replace(settings, autocast=wanted))


def optimizer_step(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """The step of the optimizer is compiled, the model is not."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    first_tensor(model.train()(**inputs)).float().square().mean().backward()
    compiled(optimizer.step, settings)()


def graph_break(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """Two graphs of one function."""

    def broken(**inputs: Any) -> torch.Tensor:
        output = first_tensor(model(**inputs))
        torch._dynamo.graph_break()
        return torch.softmax(output.float(), dim=-1) * 2.0

    with torch.no_grad(), autocast(settings, False):
        model.eval()
        compiled(broken, settings)(**inputs)


def freeze(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """torch takes the weights as constants, and bypasses its caches."""
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        compiled(model.eval(), settings)(**inputs)


def two_batches(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """The second batch has another size: torch compiles anew, with a dynamic size."""
    with torch.no_grad(), autocast(settings, False):
        run = compiled(model.eval(), settings, dynamic=None)
        run(**inputs)
        run(**{k: torch.cat([v, v]) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()})


def generate(model: Any, inputs: dict[str, Any], settings: Settings) -> None:
    """Three tokens with a static cache: a graph for the prompt, and one for each token after."""
    model.eval()
    model.forward = compiled(model.forward, settings)
    with autocast(settings, False):
        model.generate(
            inputs["input_ids"],
            max_new_tokens=3,
            do_sample=False,
            cache_implementation="static",
            disable_compile=True,
        )


WAYS: dict[str, Way] = {
    "infer": infer,
    "inference_mode": forward(torch.inference_mode),
    "amp": forward(is_autocast=True),
    "fullgraph": forward(fullgraph=True),
    "dynamic": forward(dynamic=True),
    # As one evaluates who forgets no_grad: the entry of a training graph is stored with its backward graph, never.
    "forward_only": forward(contextlib.nullcontext),
} | {
    way.__name__: way
    for way in (
        channels_last, train, amp_train, optimizer_step, graph_break, freeze, two_batches, generate,
    )
}  # fmt: skip


# --- the process ---


def apply_settings(settings: Settings) -> None:
    torch._inductor.config.fallback_by_default = not settings.kernels
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if settings.deterministic:
        torch.use_deterministic_algorithms(True)
    if settings.tag:
        torch.compiler.config.cache_key_tag = settings.tag
    if not settings.epilogue_fusion and settings.mode != "default":
        torch._inductor.config.epilogue_fusion = False


def with_dtype(model: Any, inputs: dict[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    dtype = getattr(torch, name)

    def turned(value: Any) -> Any:
        if isinstance(value, list):
            return [turned(one) for one in value]
        return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return model.to(dtype), {name: turned(value) for name, value in inputs.items()}


def run_program(program: str, size: Size, settings: Settings) -> dict[str, Any]:
    name, _, way = program.partition(":")
    torch.manual_seed(0)
    model, inputs = with_dtype(*made(name, size), settings.dtype)
    if not name.startswith(("timm_", "tv_")):
        inputs |= {"return_dict": True}
    before, started, error = counters(), time.time(), None
    try:
        WAYS[way](model, inputs, settings)
    except (
        Exception
    ) as failure:  # the tests say which programs may fail, and what torch counted until then holds
        error = f"{type(failure).__name__}: {str(failure)[:500]}"
    row = {"program": program, "started": started, "ended": time.time(), "before": before, "error": error}
    row["after"] = counters()
    if settings.forget:
        torch._dynamo.reset()
    return row


def parse_arguments() -> tuple[argparse.Namespace, Size, Settings]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", metavar="MODEL:WAY")
    parser.add_argument("--report", type=Path, required=True, help="where to write what torch counted")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="of Size or Settings")
    arguments = parser.parse_args()
    changes = {name: json.loads(value) for name, _, value in (text.partition("=") for text in arguments.set)}
    of_size = {field.name for field in fields(Size)}
    size = Size(**{name: value for name, value in changes.items() if name in of_size})
    settings = Settings(**{name: value for name, value in changes.items() if name not in of_size})
    return arguments, size, settings


def main() -> None:
    arguments, size, settings = parse_arguments()
    apply_settings(settings)
    rows = [run_program(program, size, settings) for program in arguments.programs]
    report = {
        "torch_version": torch.__version__,
        "pid": os.getpid(),
        "counters": counters(),
        "programs": rows,
    }
    arguments.report.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
