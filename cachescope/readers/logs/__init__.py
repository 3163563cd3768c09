"""Turns logs into rows: TORCH_TRACE files and text logs, in any packing and any number.

`many_logs` reads them; `processes` joins the logs of one process. The rest is one module per step and may change with torch.
"""
