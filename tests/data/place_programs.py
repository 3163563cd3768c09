"""Compiled code of several kinds; prints as JSON where Python says it is: ``python place_programs.py FOLDER``, an empty folder."""

import json
import sys
from pathlib import Path

import torch


def plain(x):
    return x.sin() + 1


class Block(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        torch._dynamo.graph_break()
        return y.relu()


def from_a_file(folder):
    """A function in a file with a space and a colon in its name."""
    path = Path(folder) / "my model: v2.py"
    path.write_text("\n\ndef scaled(x):\n    return x * 7\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["scaled"]


def run(code, function, *inputs):
    """Compile a function and call it; returns where Python says that its code is."""
    torch.compile(function)(*inputs)
    return [code.co_name, code.co_filename, code.co_firstlineno]


def main():
    shape = torch.ones(3)
    double = lambda x: x * 3  # noqa: E731
    block, scaled = Block(), from_a_file(sys.argv[1])
    places = [
        run(plain.__code__, plain, shape),
        run(double.__code__, double, shape),
        run(Block.forward.__code__, block, shape),
        run(scaled.__code__, scaled, shape),
    ]
    # From here on other code has compile id 0/0.
    torch._dynamo.reset()
    again = lambda x: x.cos() * 5  # noqa: E731
    places.append(run(again.__code__, again, shape))
    print(json.dumps(places))


main()
