#!/usr/bin/env python3
"""Motet's tokenizer and Hugging Face's tokenizers library side by side: one core, processor time, the best of a few.

usage: bench/text.py FOLDER [PROGRAM]     FOLDER holds tokenizer.json; PROGRAM: default build/bench/bench_text"""

import os
import re
import subprocess
import sys
import tempfile
import time

os.environ['TOKENIZERS_PARALLELISM'] = 'false'
RUNS = 3


def best(work):
    """The shortest time of a few runs, and what the last one gave."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def library_figures(path, texts):
    """Name of a text -> (encode, decode) in MB/s, and the time to load in ms; None where there is no library."""
    try:
        from tokenizers import Tokenizer, __version__
    except ImportError:
        print('the tokenizers library is not installed (pip install tokenizers): motet alone is measured')
        return None, {}
    load, tokenizer = best(lambda: Tokenizer.from_file(path))
    print('tokenizers', __version__)
    figures = {}
    for name in sorted(os.listdir(texts)):
        with open(os.path.join(texts, name), encoding='utf-8', newline='') as file:
            text = file.read()
        size = len(text.encode()) / 1e6
        encode, batch = best(lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False))
        decode, _ = best(lambda: tokenizer.decode(batch[0].ids, skip_special_tokens=False))
        figures[name[:-len('.txt')]] = size / encode, size / decode
    return load * 1e3, figures


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program = sys.argv[2] if len(sys.argv) == 3 else 'build/bench/bench_text'
    with tempfile.TemporaryDirectory() as texts:
        subprocess.run([program, '--write', texts], check=True)
        load, library = library_figures(os.path.join(sys.argv[1], 'tokenizer.json'), texts)
    lines = subprocess.run([program, sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print('load {} ms, the library {}'.format(lines[0].split()[1], '{:.0f} ms'.format(load) if load else '-'))
    print('{:<10}{:>14}{:>14}{:>14}{:>14}'.format('MB/s', 'encode', 'library', 'decode', 'library'))
    for line in lines[1:]:
        name = line.split()[0]
        encode, decode = re.search(r'encode +([0-9.]+)', line), re.search(r'decode +([0-9.]+)', line)
        theirs = ['{:.1f}'.format(f) for f in library.get(name, ())] or ['-', '-']
        print('{:<10}{:>14}{:>14}{:>14}{:>14}'.format(name, encode[1], theirs[0], decode[1], theirs[1]))


if __name__ == '__main__':
    main()
