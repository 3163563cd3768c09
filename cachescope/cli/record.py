"""Stub record."""


def add_arguments(p): ...
def run(a):
    return 0
