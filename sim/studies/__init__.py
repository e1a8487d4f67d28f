"""Studies: runs by the hundred thousand as tables, judged and summed up in SQL."""
