"""Experiments on a page: the table, the picture, and the reason for each difference."""
