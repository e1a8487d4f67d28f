"""Studies: many runs as a data pipeline, on Spark or on one machine.

A study is a small file: what varies, what is asked. `pipeline.py` simulates its runs, keeps every
history as Parquet, judges and aggregates it in SQL, and hands the results to a report.

Not: how the report looks (`ottla.report`).
"""
