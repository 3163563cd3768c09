"""The version of cachescope; a module of its own, so that whoever prints it imports nothing else."""

__version__ = "0.1.0"
