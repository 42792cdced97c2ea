"""What a selected decision does to the request."""
