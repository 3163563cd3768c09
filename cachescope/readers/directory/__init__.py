"""Cache directories to rows: one module per kind of file that torch or Triton writes.

`cache_dir` walks, `places` says what lies where. A new kind of file is a module here and a rule in `places`.
"""
