#!/usr/bin/env python3
"""Asks Hugging Face's tokenizers library about real tokenizers, on texts made to be awkward, and writes its answers in
the form that text_corpus checks. Needs that library: pip install tokenizers.

usage: tests/text/compare.py FOLDER [--seed N] [--texts N] [--all] [NAME ...] >vectors.jsonl
       build/tests/text/text_corpus vectors.jsonl FOLDER

FOLDER holds NAME/tokenizer.json; without names, each one there is asked. --all adds every character of Unicode."""

import argparse
import json
import os
import random
import sys
import unicodedata

from tokenizers import Tokenizer

PIECES = [
    'Hello, world!', "I'm sure you'RE right; he'd say so.", 'naïve café déjà-vu', 'e\u0301a\u0323\u0301',
    'def f(x: int) -> int:\n    return x ** 2  # square\n', '\tif (a && b[i] != 0x1F) { x->y = "\\n"; }\r\n',
    'SELECT * FROM t WHERE a >= 10.5e-3;', '<div class="x">&nbsp;</div>', '{"a": [1, 2.50, null]}',
    'http://a.b/c?d=e#f', '3.14159 1,000,000 2026-01-31 \u0663\u0664\u0665 \u216b \xbd \xb2',
    '\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002',
    '\u4e2d\u6587\u5b57\u7b26\uff0c\u6a19\u9ede\uff1b\u300c\u5f15\u865f\u300d',
    '\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4',
    '\uff46\uff55\uff4c\uff4c\u3000\uff57\uff49\uff44\uff54\uff48',
    '\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c\u061f',
    '\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd',
    '\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902 \u0935\u093e\u0915\u094d\u092f',
    '\u0e44\u0e21\u0e48\u0e21\u0e35\u0e0a\u0e48\u0e2d\u0e07\u0e27\u0e48\u0e32\u0e07', 'Привет, мир!',
    'Καλημέρα Σίσυφος', '\u0130stanbul \xdf\u1e9e \u01c5 \ufb01',
    '\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466', '\U0001f1eb\U0001f1f7\U0001f1e9',
    '\u2764\ufe0f\U0001f44d\U0001f3fd', '1\ufe0f\u20e3', ' ', '  ', '   ', '\n', '\n\n', '\n\n\n', '\r\n', '\t',
    '\t\t', ' \n ', '\xa0', '\u3000', '\u2028', '\u200b', '\ufeff', '\xad', '\x00', '\x7f', '\x85',
    'aaaaaaaaaaaaaaaaaaaaaaa', '________', '--------', '=================================', '.................',
    '                                                                 ', '\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n',
    '!?!?', '\u2026\u2014\u2013', "``x''", '\u2581', '\u2581\u2581a', '<0x41>', '##a', '\u0120the', '\ufffd', '\u0301',
    '\u1e9b\u0323', '\u1100\u1161\u11a8', '\uf900\U0002f800', 'ABCdefGHI', "'S 'T", 'don’t',
]


def character(rng):
    """Any character but a surrogate: often a small one, otherwise from anywhere."""
    top = rng.choice((0x80, 0x300, 0x3000, 0x10000, 0x10000, 0x30000, 0x110000))
    while True:
        c = chr(rng.randrange(top))
        if not 0xD800 <= ord(c) <= 0xDFFF and (unicodedata.category(c) != 'Cn' or rng.random() < 0.02):
            return c


def token(rng, library, size, special):
    """A token's own spelling, or an added token with something odd about it."""
    if not special or rng.random() < 0.5:
        return library.decode([rng.randrange(size)], skip_special_tokens=False)
    s = rng.choice(special)
    change = rng.randrange(8)
    return (s, s, ' ' + s, s + ' ', s.upper(), s[:-1], s + s, '\n' + s + '  ')[change]


def text(rng, library, size, special):
    parts = []
    for _ in range(rng.randrange(1, 12)):
        kind = rng.randrange(8)
        if kind == 0:
            parts.append(''.join(character(rng) for _ in range(rng.randrange(1, 12))))
        elif kind == 1:
            parts.append(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12))).decode(errors='replace'))
        elif kind <= 3:
            parts.append(token(rng, library, size, special))
        elif kind == 4:
            parts.append(character(rng) * rng.randrange(1, 30))
        else:
            parts.append(rng.choice(PIECES))
        if rng.random() < 0.4:
            parts.append(' ')
    return ''.join(parts)


def every_character():
    """Each one between letters, with a blank and by itself, a few at a time."""
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ('Cs', 'Cn', 'Co')]
    for i in range(0, len(known), 16):
        yield ' '.join(c + 'a' + c + c + '1' + c for c in known[i:i + 16])


def answer(library, name, s):
    line = {'tokenizer': name, 'text': s, 'ids': library.encode(s, add_special_tokens=False).ids,
            'ids_special': library.encode(s).ids}
    line['decoded'] = library.decode(line['ids'], skip_special_tokens=False)
    line['decoded_skip_special'] = library.decode(line['ids_special'], skip_special_tokens=True)
    return line


def answer_ids(library, name, ids):
    return {'tokenizer': name, 'ids': ids, 'decoded': library.decode(ids, skip_special_tokens=False),
            'decoded_skip_special': library.decode(ids, skip_special_tokens=True)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--texts', type=int, default=500)
    parser.add_argument('--all', action='store_true')
    options = parser.parse_intermixed_args()
    for name in options.names or sorted(os.listdir(options.folder)):
        path = os.path.join(options.folder, name, 'tokenizer.json')
        if not os.path.exists(path):
            continue
        try:
            library = Tokenizer.from_file(path)
        except Exception as error:  # the library raises nothing more precise
            print('{}: the library cannot read it: {}'.format(name, error), file=sys.stderr)
            continue
        library.no_truncation()
        library.no_padding()
        special = [t.content for t in library.get_added_tokens_decoder().values()]
        rng = random.Random(options.seed)
        size = library.get_vocab_size()
        texts = [text(rng, library, size, special) for _ in range(options.texts)]
        for s in texts + (list(every_character()) if options.all else []):
            print(json.dumps(answer(library, name, s)))
        with open(path, encoding='utf-8') as file:
            fallback = 'ByteFallback' in file.read()
        for _ in range(options.texts):
            line = answer_ids(library, name, [rng.randrange(size) for _ in range(rng.randrange(20))])
            if not fallback or '\ufffd' not in line['decoded']:  # docs/tokenizers.md says why these differ
                print(json.dumps(line))


if __name__ == '__main__':
    main()
