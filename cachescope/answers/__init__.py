"""Answers as plain values, made from frames and hash details. They know neither the Scope nor how they are shown.

`recording.Recording` is what was read; every answer takes one. `cachescope.report` and `cachescope.views` show what is here.
"""
