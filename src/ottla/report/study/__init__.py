"""The report of a study: one HTML file with its answer, tables, pictures and cost."""
