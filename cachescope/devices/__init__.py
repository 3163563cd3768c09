"""Devices: the places that name them, and what is known of them."""
