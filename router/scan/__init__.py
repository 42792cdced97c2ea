"""How long text is read."""
