"""What disks and crashes do to files of the cache."""

import os


def damage(dice, folder):
    """Tears the end of one of the last files off, or flips a few bits of it. Whether there was one."""
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".motet")]
    if not files:
        return False
    path = dice.choice(files[-3:])
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        if dice.random() < 0.5:
            f.truncate(dice.randrange(size + 1))
            return True
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(max(size, 1))
            f.seek(at)
            byte = f.read(1)
            f.seek(at)
            f.write(bytes([byte[0] ^ 1 << dice.randrange(8)]) if byte else b"")
    return True
