"""Client wire formats: requests read into one neutral form, errors in each format, byte-exact edits."""
