"""The report of a study: one HTML file with its answer, its tables, its pictures and its bill."""
