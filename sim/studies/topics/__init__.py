"""Topics as tables: a data source for Spark over a live cluster, or over a node's data folder.

`asked` reads the options, `offsets` cuts ranges, `identity` tells topics of the same name apart,
`wire` and `folder` read record batches, `columns` makes Arrow columns of them, and `source` is what
Spark uses. Only `source` needs pyspark.
"""
