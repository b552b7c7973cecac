"""Load on a server: a schedule dealt out to client processes, and whether they kept up."""
