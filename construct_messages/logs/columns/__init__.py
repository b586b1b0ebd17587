"""Messages and solutions in files of Parquet, Arrow and CSV. `columns/` makes the rows."""
