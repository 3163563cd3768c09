"""Notebook views: ipywidgets put together, and small anywidget controls where ipywidgets lack one."""
