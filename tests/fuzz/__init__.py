"""Inputs that nobody wrote, fed to every reader: see `python -m fuzz --help`."""
