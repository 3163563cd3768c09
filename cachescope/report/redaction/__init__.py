"""What `--redact` shows and hides: what is known to be harmless stays, the rest becomes stand-ins."""
