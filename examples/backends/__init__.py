"""Sample LLM backends: small servers that answer in OpenAI's and Anthropic's formats and say which model answered."""
