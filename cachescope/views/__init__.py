"""What is looked at in a notebook: ipywidgets put together, and small anywidget controls where one is missing."""
