"""Client wire formats: requests read into one neutral form, answers and errors written in each format, byte-exact edits."""
