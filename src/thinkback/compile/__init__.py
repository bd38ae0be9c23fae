"""The folds that build the next request from the log: select, strip, decide, repair, count, assemble. Pure."""
