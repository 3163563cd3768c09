"""A pre-flight inside of the program's own process: Dynamo and AOTAutograd work, no code is generated, each key is noted.

The modules here import torch and the standard library and nothing else of cachescope: the program's Python need not have
it. `site/sitecustomize.py` loads them there by their path; `cachescope.scope.preflight` uses them in this process.
"""
