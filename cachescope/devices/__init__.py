"""Devices: where they are named, and what is known of them."""
