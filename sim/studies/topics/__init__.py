"""Topics as tables: a data source for Spark over a live cluster, or over a node's data folder.

`asked` reads the options, `offsets` cuts ranges, `identity` tells topics of one name apart, `wire`
and `folder` read record batches, `columns` makes Arrow columns of them, and `source` is what Spark
sees. Only `source` needs pyspark.
"""
