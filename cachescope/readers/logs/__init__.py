"""Logs to rows: TORCH_TRACE files and text logs, however they are packed and however many there are.

`many_logs` reads them, `processes` joins what tells of one process. The rest is one module per step and may change with torch.
"""
