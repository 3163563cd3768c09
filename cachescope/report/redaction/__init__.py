"""What `--redact` shows and what it hides: all but what is known to be harmless, and stand-ins for the rest."""
