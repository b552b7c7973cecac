"""Every process that is started: tied to this one, talked to, forked, watched, ended whole."""
