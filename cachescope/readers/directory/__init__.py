"""Turns cache directories into rows: one module per kind of file that torch or Triton writes.

`cache_dir` walks the directory; `places` defines which file is where. A new kind of file needs a module and a rule in `places`.
"""
