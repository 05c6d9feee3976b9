"""Archives of topics: folders of Parquet files by day, which grow by what became stable since the last run.

`archiver` reads the stores and writes. `manifest` lists the files and how far they reach. `archived_rows` reads them,
for the format `stablecast-messages` of Spark. This package needs pyarrow; others import it on demand.
"""
