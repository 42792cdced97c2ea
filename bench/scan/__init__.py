"""What a scan of a whole input costs beside its model: `python -m bench scan`."""
