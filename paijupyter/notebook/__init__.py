"""From the cells of a notebook to the entry point of a job."""
