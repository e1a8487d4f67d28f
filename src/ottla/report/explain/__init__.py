"""Explains a run: one HTML page that shows what happened, and why it matters."""
