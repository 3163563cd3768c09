"""A program that compiles, and ends as its argument says."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable

END, *PLACE = sys.argv[1:]


def compiled(function: Callable[..., object]) -> None:
    import torch

    torch.compile(function)(torch.ones(64))


def relu() -> None:
    import torch

    compiled(torch.relu)


def cos() -> None:
    import torch

    compiled(torch.cos)


def main() -> None:
    import torch

    if END == "functorch":
        import torch._functorch.config as config

        config.donated_buffer, config.activation_memory_budget = False, 0.5
        exec(" ".join(PLACE))
    if END in ("spawn", "fork"):
        child = multiprocessing.get_context(END).Process(target=relu)
        child.start()
        child.join()
    elif END == "child":
        subprocess.run([sys.executable, __file__, "exit"], env=dict(os.environ), check=False)
    elif END != "nothing":
        relu()
    if END == "exit":
        sys.exit(7)
    if END == "os._exit":
        os._exit(7)
    if END == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    if END == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if END == "fails":
        raise ValueError("failed")
    if END == "forks":
        fork = multiprocessing.get_context("fork")
        for target in (str, cos):
            child = fork.Process(target=target)
            child.start()
            child.join()
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
    if END == "options":
        torch.compile(torch.cos, options={"max_autotune": True})(torch.ones(64))
    if END == "truth":
        import sitecustomize
        from torch._inductor.runtime.caching.context import _isolation_key

        print(_isolation_key(), sitecustomize.__file__, *sys.path[1:3], sep="\n")


if __name__ == "__main__":
    main()
