"""Where what was said is kept: the logs of the tenants, and the spool while a database is in trouble."""
