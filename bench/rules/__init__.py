"""What heuristic rules cost: by the length of the text, by their number, and beside the gateway itself."""
