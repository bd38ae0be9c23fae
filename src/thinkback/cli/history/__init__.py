"""Commands for what is in the log: looking, branching, editing, searching, erasing, files in and out."""
