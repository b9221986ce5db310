"""Short videos, and what PyAV makes of their frames."""


def write(w, folder, picture):
    pass
