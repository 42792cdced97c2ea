"""What a router does when its decision model is asked for four times what it can read."""
