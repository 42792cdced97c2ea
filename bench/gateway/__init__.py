"""What the router costs per request, rung by rung, and how that compares with the LiteLLM proxy."""
