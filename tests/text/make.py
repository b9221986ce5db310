#!/usr/bin/env python3
"""Writes tests/text/tokenizers/*.json and tests/text/vectors.jsonl: small tokenizers, each for a few features, and
what Hugging Face's tokenizers library (0.23) answers for them. Needs that library: pip install tokenizers.

Vocabularies are chosen so that ids show what a stage did:
  spelled()  a token for each byte, and byte_fallback: ids are the bytes of the normalized text;
  cut()      a token for each byte at the end of a piece and another for elsewhere: ids show where pieces end.
"""
import base64
import json
import os
import struct

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = {}  # name -> (tokenizer, texts)


def byte_chars():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    chars, extra = {}, 0
    for byte in range(256):
        chars[byte] = chr(byte) if byte in plain else chr(256 + extra)
        extra += byte not in plain
    return chars


BYTE = byte_chars()


def level(text):
    return ''.join(BYTE[b] for b in text.encode())


def bpe(vocab, merges=(), **settings):
    model = {'type': 'BPE', 'dropout': None, 'unk_token': None, 'continuing_subword_prefix': None,
             'end_of_word_suffix': None, 'fuse_unk': False, 'byte_fallback': False, 'ignore_merges': False}
    model.update(settings)
    return {**model, 'vocab': {t: i for i, t in enumerate(vocab)}, 'merges': list(merges)}


def spelled():
    return bpe([f'<0x{b:02X}>' for b in range(256)], byte_fallback=True)


def cut():
    """For pieces in the byte-level alphabet."""
    return bpe([BYTE[b] for b in range(256)] + [BYTE[b] + '</w>' for b in range(256)], end_of_word_suffix='</w>')


def cut_text(chars):
    """The same for pieces of the characters given; others are unknown."""
    return bpe(['<unk>', '<unk></w>', *chars, *(c + '</w>' for c in chars)], end_of_word_suffix='</w>',
               unk_token='<unk>')


def learn(words, count):
    """Byte-level merges, the commonest pair first; the smallest of equal ones."""
    words = [[BYTE[b] for b in w.encode()] for w in words]
    merges = []
    for _ in range(count):
        pairs = {}
        for w in words:
            for p in zip(w, w[1:]):
                pairs[p] = pairs.get(p, 0) + 1
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = [w[i] + w[i + 1]]
                i += 1
    return merges


def added(content, special=True, **flags):
    token = {'id': 0, 'content': content, 'single_word': False, 'lstrip': False, 'rstrip': False,
             'normalized': False, 'special': special}
    token.update(flags)
    return token


def make(name, model, texts, normalizer=None, pre=None, post=None, decoder=None, tokens=(), texts_too=True):
    known = len(model['vocab'])
    tokens = [{**t, 'id': model['vocab'].get(t['content'], known + i) if isinstance(model['vocab'], dict) else 0}
              for i, t in enumerate(tokens)]
    MADE[name] = ({'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': tokens,
                   'normalizer': normalizer, 'pre_tokenizer': pre, 'post_processor': post, 'decoder': decoder,
                   'model': model}, texts + (COMMON if texts_too else []))


def sequence(kind, *parts):
    return {'type': 'Sequence', kind: list(parts)}


def split(pattern, behavior='Isolated', invert=False, kind='Regex'):
    return {'type': 'Split', 'pattern': {kind: pattern}, 'behavior': behavior, 'invert': invert}


def replace(pattern, content, kind='String'):
    return {'type': 'Replace', 'pattern': {kind: pattern}, 'content': content}


def byte_level(prefix=False, regex=False):
    return {'type': 'ByteLevel', 'add_prefix_space': prefix, 'trim_offsets': True, 'use_regex': regex}


def template(before=(), after=()):
    special = {t: {'id': t, 'ids': ids, 'tokens': [t] * len(ids)} for t, ids in (*before, *after)}
    piece = [{'SpecialToken': {'id': t, 'type_id': 0}} for t, _ in before] + [{'Sequence': {'id': 'A', 'type_id': 0}}]
    piece += [{'SpecialToken': {'id': t, 'type_id': 0}} for t, _ in after]
    return {'type': 'TemplateProcessing', 'single': piece,
            'pair': piece + [{'Sequence': {'id': 'B', 'type_id': 1}}], 'special_tokens': special}


COMMON = ['', 'a', ' ', '\n', 'Hello, world!', '  two  blanks  ', 'tab\tcr\r\nlf\n', 'caf\u00e9 e\u0301',
          '\u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4', '\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7',
          'a\x00b\x7f',
          'x86_64 3.14 1,000']
SPACES = ['\u00a0x\u3000y\u2028z', '\u180ex \u200by \ufeffz', '   a   b   ', '\r\n\r\n  x', 'a \n \n b',
          ' ' * 40 + 'x']
NORMAL = ['\u1e9b\u0323 \u212b \u2126 \ufb01 \u00bd \u2460 \uff21', '\u0301\u0323 a\u0323\u0301\u0327 q\u0307\u0323',
          '\u1100\u1161\u11a8 \uac00\u11a8 \uac01', '\u304b\u3099 \uff76\uff9e',
          'A\u0391\u0410 \u03a3\u03a3 \u0130I \u1e9e',
          '\u2009\u2028 x \u3000 ', '\x01\x08\x0b\x0e\x1f\x7f\x8f\x9f\t\r\u1680\u200e\u2581\ufffd',
          '\u4e2d\u6587\u3400\U00020000\uf900 ab', '``quoted\'\' text', '\u0e33\u0e49 \u0958 \u0344',
          '\U0001d55a \u1d2c \u02b0', '\u00ad\u200c\u200d\u2060']
# Characters that came after Unicode 8, or were something else then: the library does not know them everywhere.
LATER = ['a\u2e43b\u2e49c\U0001e95fd\u166de\U000111c9f', 'a\u08d5\u1dfbb\u07fd\u1abfc\U0001133bd\u1734e\u1cf2f',
         '\u32ff \uab69 \U0001fbf3 \ua7f2 \U00011938', '\u08d5\u0323 \u07fd\u0323', 'x\u08e2y\U000110cdz',
         '\U0001e900\ua7ae\u1c90\u13a0\uab70']


def models():
    text = 'the then there other mother hello world hello there \u00e9t\u00e9 caf\u00e9 1234 the the'
    merges = learn([w for t in text.split(' ') for w in (t, ' ' + t)], 60)
    base = [BYTE[b] for b in range(256)] + list(dict.fromkeys(a + b for a, b in merges))
    words = ['the other mother', ' hello there', 'hellothere', 'cafe caf\u00e9', '\u00e9t\u00e9\u00e9', 'thethethe',
             '12345']
    gpt2 = byte_level(regex=True)
    joined = [f'{a} {b}' for a, b in merges]
    make('bpe-gpt2', bpe(base, joined), words, pre=gpt2, post=gpt2, decoder=gpt2,
         tokens=[added('<|endoftext|>')])
    make('bpe-gpt2-prefix', bpe(base, [list(m) for m in merges]), words + ['<|x|>the', 'the<|x|> the'],
         pre=byte_level(prefix=True, regex=True), decoder=gpt2, tokens=[added('<|x|>')])
    odd = base + [level(' mother'), level('hello wor')]
    make('bpe-ignore-merges', bpe(odd, joined, ignore_merges=True), words + [' mother', 'hello wor'],
         pre=sequence('pretokenizers', split(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+"), byte_level()),
         post=sequence('processors', gpt2, template([('<s>', [len(odd)])])), decoder=gpt2, tokens=[added('<s>')])
    make('bpe-not-ignored', bpe(odd, joined), words + [' mother', 'hello wor'], pre=byte_level(), decoder=gpt2)

    merges = ['a b', 'ab c', 'b c', 'a bc', '\u2581 a', '\u2581a b', 'c c', 'cc cc', '\u2581 \u2581', 'x \u00e9']
    chars = ['<unk>', 'a', 'b', 'c', 'x', '\u2581', '\u00e9', '\n']
    made = [m.replace(' ', '') for m in merges]
    abc = ['abc', 'aabbcc', 'abcabc', 'cccccccc', 'ab ab  abc', 'x\u00e9x\u00e9', 'a\u00fcb', '\u00fc\u00fc\u00fc',
           'a\u00fc\u00fcb c']
    fallback = [f'<0x{b:02X}>' for b in range(256)]
    gemma = sequence('decoders', replace('\u2581', ' '), {'type': 'ByteFallback'}, {'type': 'Fuse'})
    make('bpe-fallback', bpe(list(dict.fromkeys(chars + made)) + fallback, merges, unk_token='<unk>', fuse_unk=True,
                             byte_fallback=True), abc + ['a\n\nb', '\n\n\n\n\n', 'a<b>\n\n'],
         normalizer=replace(' ', '\u2581'), pre=split(' ', 'MergedWithPrevious', kind='String'),
         post=template([('<unk>', [0])]), decoder=gemma,
         tokens=[added('\n\n', special=False), added('\n\n\n', special=False), added('<b>')])
    for fuse in (False, True):
        make(f'bpe-unk-{"fused" if fuse else "single"}', bpe(list(dict.fromkeys(chars + made)), merges,
                                                             unk_token='<unk>',
                                                            fuse_unk=fuse), abc, normalizer=replace(' ', '\u2581'))
    part = ['<unk>', *chars[1:], '<0xC3>', '<0x20>']
    make('bpe-some-bytes', bpe(part + made[:4], merges[:4], unk_token='<unk>', fuse_unk=True, byte_fallback=True), abc)
    make('bpe-dropped', bpe(list(dict.fromkeys(chars + made)), merges), abc)
    make('bpe-affixes', bpe(['<unk>', 'a', 'b', '##a', '##b', 'a</w>', 'b</w>', '##a</w>', '##b</w>', 'ab', '##ab',
                             '##ab</w>'],
                            ['a ##b', '##a ##b', '##a ##b</w>'], unk_token='<unk>', continuing_subword_prefix='##',
                            end_of_word_suffix='</w>'), ['ab', 'aab', 'abab', 'ba ab', 'abc a'],
         pre={'type': 'WhitespaceSplit'})
    old = bpe(base, joined)
    del old['type']
    make('bpe-old', old, words, pre=byte_level(regex=True), decoder=gpt2)

    pieces = [['<unk>', 0], ['\u2581', -2.0], ['a', -3.0], ['b', -3.5], ['ab', -4.0], ['\u2581a', -3.2], ['abc', -5.5],
              ['c', -2.5], ['bc', -5.0], ['+', -4.25], ['++', -8.5], ['\u00e9', -6.125], ['\u2581ab',
                                                                                          -7.3999999999999995]]
    meta = {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always', 'split': True}
    make('unigram', {'type': 'Unigram', 'unk_id': 0, 'vocab': pieces, 'byte_fallback': False},
         ['abc', 'a ab abc', '+++++', 'a\u00fc\u00fcb', '\u00fcb\u00fc', 'x<unk>x', 'ab\u00e9'], pre=meta,
         decoder=meta)
    make('unigram-bytes', {'type': 'Unigram', 'unk_id': 0, 'vocab': pieces + [[f, -9.0] for f in fallback],
                           'byte_fallback': True}, ['abc', 'a\u00fc\u00fcb', '\u00fc', 'a <0x41>'], pre=meta,
         decoder=sequence('decoders', {'type': 'ByteFallback'}, meta))

    make('unigram-level', {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0], *([BYTE[b],
                                                                                      -5.0] for b in range(256)),
                                                                     [level(' a'), -2.0], [level('\u00e9'), -1.0]]},
         ['a a', '\u00e9t\u00e9', ' a\u00e9'], pre=byte_level(regex=True), decoder=byte_level())
    make('wordlevel-level', {'type': 'WordLevel', 'unk_token': '?', 'vocab': {'?': 0, level(' \u00e9t\u00e9'): 1,
                                                                              'a': 2}},
         ['a \u00e9t\u00e9'], pre=byte_level(regex=True), decoder=byte_level())

    pieces = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'un', 'the', 'a', '##aff', '##able', '##a', '##b', '.', ',', "'",
              's', 'do',
              'not', "n't", '!', '?', '##ing', 'go', '\u65e5', '\u672c', 'cafe', "##'"]
    wordpiece = {'type': 'WordPiece', 'unk_token': '[UNK]', 'continuing_subword_prefix': '##',
                 'max_input_chars_per_word': 12, 'vocab': {t: i for i, t in enumerate(pieces)}}
    make('wordpiece', wordpiece, ['unaffable', 'The UNAFFABLE!', "the a's going, do not go.", 'unaffableaffable',
                                  'gob\u00e9',
                                  'caf\u00e9', '\u65e5\u672c', '[CLS] un[SEP]'],
         normalizer={'type': 'BertNormalizer', 'clean_text': True, 'handle_chinese_chars': True, 'strip_accents': None,
                     'lowercase': True}, pre={'type': 'BertPreTokenizer'},
         post={'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]},
         decoder={'type': 'WordPiece', 'prefix': '##', 'cleanup': True},
         tokens=[added(t) for t in pieces[:4]])
    make('wordpiece-plain', {**wordpiece, 'max_input_chars_per_word': 100}, ['unaffable', 'UN un', 'do  not'],
         pre={'type': 'Whitespace'}, post={'type': 'RobertaProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2],
                                           'trim_offsets': True, 'add_prefix_space': False},
         decoder={'type': 'WordPiece', 'prefix': '##', 'cleanup': False})
    make('wordlevel', {'type': 'WordLevel', 'vocab': {'[UNK]': 0, 'a': 1, 'Hello': 2, ',': 3, 'world': 4},
                       'unk_token': '[UNK]'},
         ['a Hello'], pre={'type': 'Whitespace'})


def normalizers():
    for form in ('NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt'):
        make('normal-' + form.lower(), spelled(), NORMAL + LATER + SPACES, normalizer={'type': form})
    make('normal-bytelevel', spelled(), NORMAL, normalizer={'type': 'ByteLevel'})
    for name, left, right in (('left', True, False), ('right', False, True), ('both', True, True)):
        make('normal-strip-' + name, spelled(), SPACES, normalizer={'type': 'Strip', 'strip_left': left,
                                                                    'strip_right': right})
    make('normal-sequence', spelled(), NORMAL + ['\u00c9'],
         normalizer=sequence('normalizers', replace('``', '"'), replace("''", '"'), {'type': 'NFKD'},
                             {'type': 'StripAccents'}, {'type': 'Lowercase'}, replace(r' {2,}', ' ', 'Regex'),
                             {'type': 'Prepend', 'prepend': '\u2581'}))
    make('normal-replace', spelled(), ['aXbXXc', 'XX', 'x1y22z', 'q'],
         normalizer=sequence('normalizers', replace('X', 'YZ'), replace(r'[0-9]+', '#', 'Regex'), replace('q', '')))
    make('normal-replace-empty', spelled(), ['ab', 'b'], normalizer=replace(r'a*', '-', 'Regex'))
    for i, flags in enumerate([(True, True, None, True), (False, True, None, False), (True, False, True, False),
                               (True, True, False, True)]):
        make(f'normal-bert-{i}', spelled(), NORMAL + LATER + SPACES,
             normalizer=dict(zip(('type', 'clean_text', 'handle_chinese_chars', 'strip_accents', 'lowercase'),
                                 ('BertNormalizer', *flags))))
    make('normal-charsmap', spelled(), NORMAL + ['ABab', 'a\u0301', 'e\u0301x', '\u3000', 'A\u0301\u0301\u0301',
                                                 '\r\n', 'zz'],
         normalizer={'type': 'Precompiled', 'precompiled_charsmap': charsmap({
             'A': 'a', 'a\u0301': '\u00e1', '\u3000': ' ', '\ufb01': 'fi', '\x01': '', '\u2460': '1', '\r': '\n',
             'z': 'zz',
             'e\u0301': 'E'})})


def charsmap(rules):
    """SentencePiece's table: a double array in the layout of Darts-clone."""
    texts, values = b'', {}
    for key, text in sorted(rules.items()):
        values[key.encode()] = len(texts)
        texts += text.encode() + b'\0'
    units, used = {0: 0}, {0}

    def place(labels):
        base = 1
        while any(base ^ label in used for label in labels):
            base += 1
        used.update(base ^ label for label in labels)
        return base

    def build(at, keys, depth, label):
        labels = sorted({k[depth] if len(k) > depth else 0 for k in keys})
        leaf = 0 in labels
        base = place(labels)
        assert (at ^ base) < 1 << 21
        units[at] = (at ^ base) << 10 | leaf << 8 | label
        for child in labels:
            if child == 0:
                units[base] = next(values[k] for k in keys if len(k) == depth) | 1 << 31
            else:
                build(base ^ child, [k for k in keys if len(k) > depth and k[depth] == child], depth + 1, child)

    build(0, list(values), 0, 0)
    array = b''.join(struct.pack('<I', units.get(i, 0)) for i in range(max(used) + 257))
    return base64.b64encode(struct.pack('<I', len(array)) + array + texts).decode()


PATTERNS = {
    'gpt2': r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    'qwen2': r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
             r"|\s+(?!\S)|\s+",
    'qwen3.5': r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
               r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
               r"|\s+(?!\S)|\s+",
    'o200k': r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m"
             r"|'ll|'d)?"
             r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m"
             r"|'ll|'d)?"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    'deepseek': "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    'possessive': r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
                  r"|\s++$|\s*[\r\n]"
                  r"|\s+(?!\S)|\s",
    'bloom': " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    'kimi': r"[\p{Han}]+"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    'words': r"\w+|\W",
    'digits': r"\d|\D+",
    'hex': r"\h+|\H+",
    'sets': r"[a-c[x-z]]+|[^\W[0-4]]|[\s\S]",
    'negated': r"[^[^a-z]]+|[^a-z&&[^c]]",
    'braces': r"a{2}|b{,2}c|d{2}?|x{1,2}|\{|[{}]",
    'lines': r"^.|.$|\n",
    'dots': r"(?m:a.c)|.",
    'hyphens': r"[\w-]+|[+\-*]|[-x]",
    'escapes': r"\u00e9|\x{4e2d}|\x41|\p{^L}+|\P{^N}",
    'empty': r"x*",
    'posix': r"[[:alpha:]]+|[[:digit:][:space:]]|[^[:alnum:]]",
    'look': r"(?<=a)b|c(?=d)|(?<!x)y|(?>ab|a)c|(?:q|r)+?",
}

CUTS = ["I'm you'RE HE'S 'll' caf\u00e9's", 'foo.bar(baz)[0] = "x" + y/2; // \u2026',
        '\u65e5\u672c\u8a9e\u306e \u4e2d\u6587 mixed\u5b57 text',
        '1234567890 \u0663\u0664 \u00bd', 'e\u0301a\u0323 \u0939\u093f\u0928\u094d\u0926\u0940',
        'a \n\n\n  b \t c\r\n', 'UPPERlower MixedCase ABC',
        'aab bbc dddd xxxyyzz {} {2}', 'abc abd yxy axc qrqr', 'line one\nline two\n', '--- -+* _-_ 5-5',
        '\u00e9\u4e2dA!9']

SCRIPTS = ['\u3053\u308c\u306f\u30ab\u30bf\u30ab\u30ca\u3068\u6f22\u5b57 mixed \u30fc\u30fc', '  x', 'a  \u0430 b',
           'x\u0301\u064b\u064e', 'Apples are \u308a\u3093\u3054 \u6797\u6a8e', '\ue000a\ue000\U000e0001\U0010ffffb',
           '\uc0ac\uacfc \u0b85\u0b86 \u0e01\u0e02 \U00010400 \U00011a00 \u30fb\u3001', '\u0378 \u0378a']


def pretokenizers():
    for name, pattern in PATTERNS.items():
        make('cut-' + name, cut(), CUTS + SPACES, pre=sequence('pretokenizers', split(pattern), byte_level()))
    letters = sorted(set(''.join(COMMON + CUTS + SPACES)))
    for behavior in ('Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'):
        for invert in (False, True):
            name = f'split-{behavior.lower()}' + ('-inverted' if invert else '')
            make(name, cut_text(list('thefinalcoundw-123')), ['the-final--countdown', '-a-', '--', 'a'],
                 pre=split('-', behavior, invert, kind='String'), texts_too=False)
            make(name + '-regex', cut_text(list('abc123-')), ['ab12c', '1', '12ab', 'a1b2c3', '--'],
                 pre=split(r'\d+|b', behavior, invert), texts_too=False)
        make(f'punctuation-{behavior.lower()}', cut(), CUTS,
             pre=sequence('pretokenizers', {'type': 'Punctuation', 'behavior': behavior}, byte_level()))
    make('split-nothing', cut_text(list('abc ')), ['abc', 'a b'], pre=split('', kind='String'), texts_too=False)
    for name, pre in (('digits-single', {'type': 'Digits', 'individual_digits': True}),
                      ('digits', {'type': 'Digits', 'individual_digits': False}),
                      ('whitespace', {'type': 'Whitespace'}), ('whitespace-split', {'type': 'WhitespaceSplit'}),
                      ('bert', {'type': 'BertPreTokenizer'}), ('delimiter', {'type': 'CharDelimiterSplit',
                                                                             'delimiter': 'o'}),
                      ('punctuation', {'type': 'Punctuation'}), ('scripts', {'type': 'UnicodeScripts'}),
                      ('fixed', {'type': 'FixedLength', 'length': 3}), ('fixed-5', {'type': 'FixedLength'})):
        later = [] if name == 'scripts' else LATER  # PCRE2 knows more scripts
        make('pre-' + name, cut(), CUTS + SPACES + SCRIPTS + later + ['\u24d0\U0001f130 a\u200db'],
             pre=sequence('pretokenizers', pre, byte_level()))
    make('pre-falcon', cut(), CUTS, pre=sequence('pretokenizers', {'type': 'Punctuation', 'behavior': 'Contiguous'},
                                                 byte_level(regex=True),
                                                {'type': 'Digits', 'individual_digits': False},
                                                split('[0-9][0-9][0-9]')))
    make('pre-prefix', cut(), ['a', ' a', 'a<x>b', '<x> a'], pre=sequence('pretokenizers', byte_level(prefix=True)),
         tokens=[added('<x>')])
    for scheme in ('first', 'always', 'never'):
        for cuts in (False, True):
            make(f'metaspace-{scheme}' + ('-split' if cuts else ''), cut_text(['\u2581', *letters]),
                 ['a b', ' a', 'a<x>b <x> c', '<x>a', '\u2581a', '<y>a', 'a  b'], normalizer=replace('<y>', '',
                                                                                                     'String'),
                 pre={'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': scheme, 'split': cuts},
                 decoder={'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': scheme, 'split': cuts},
                 tokens=[added('<x>')], texts_too=False)
    make('metaspace-stripped', cut_text(['\u2581', *letters]), [' a', 'a', '\u0301a', '  <x> b'],
         normalizer=sequence('normalizers', {'type': 'StripAccents'}, {'type': 'Strip', 'strip_left': True,
                                                                       'strip_right': False}),
         pre={'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'first', 'split': False},
         tokens=[added('<x>')],
         texts_too=False)


def added_tokens():
    texts = ['a<l>b', 'a <l> b', 'a <r>  b', ' \n<b>\t\u3000x', '<l><r><b>', '<r> <l>', 'x<w>', 'x <w> y', '<w>',
             '_<w>', '<w>\u00e9',
             '-<w>-', '<w>\u200d', '<LOW>', '<low> <Low>', 'caf\u00c9 CAFE\u0301', '<ab>', '<abc>', '<abcd>',
             '<abc', '<ab<ab>', 'again again',
             '   <b>   <b>   ']
    tokens = [added('<l>', lstrip=True), added('<r>', rstrip=True), added('<b>', lstrip=True, rstrip=True),
              added('<w>', single_word=True), added('<Low>', special=False, normalized=True),
              added('caf\u00e9', special=False, normalized=True), added('<ab>'), added('<abc>', special=False),
              added('<ab', special=False), added('again'), added('again', special=False), added('')]
    make('added', spelled(), texts, normalizer=sequence('normalizers', {'type': 'NFC'}, {'type': 'Lowercase'}),
         tokens=tokens)
    make('added-raw', spelled(), texts, tokens=tokens)
    make('added-prepend', spelled(), ['<s>', 'a<s>b', ' <s>', '<s> <s>', 'x</s>'],
         normalizer=sequence('normalizers', {'type': 'Prepend', 'prepend': '\u2581'}, replace(' ', '\u2581')),
         decoder=sequence('decoders', replace('\u2581', ' '), {'type': 'ByteFallback'}, {'type': 'Fuse'},
                          {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}),
         tokens=[added('<s>', normalized=True), added('</s>')])
    make('added-bytes', bpe([BYTE[b] for b in range(256)]), ['\u00e9', 'x \u0120y', '\uff5cA\u2581\uff5c', '<a b>'],
         pre=byte_level(),
         decoder=byte_level(), tokens=[added('\u00e9', special=False), added('\u0120y', special=False),
                                       added('\uff5cA\u2581\uff5c'),
                                       added('<a b>', special=False), added('\u00a0', special=False)])


def decoders():
    words = ['\u2581', '\u2581a', 'b', '\u2581\u2581', '<0xC3>', '<0xA9>', '<0xE2>', '<0x96>', '<0x81>', '<0x41>',
             ' ', ' x', 'x ', '##y', '<s>']
    texts = ['\u2581ab', 'ab\u2581', '\u2581\u2581\u2581ab', 'b<s>b', ' x x ', 'x  x ', '##y##y']
    model = {'type': 'Unigram', 'unk_id': 2, 'vocab': [[w, -1.0] for w in words], 'byte_fallback': True}
    strip = {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 2}
    for name, decoder in (
            ('none', None), ('fuse', {'type': 'Fuse'}), ('replace', replace('\u2581', '__')),
            ('replace-longer', sequence('decoders', replace('b', 'bbb'), replace('bb', 'c'))),
            ('strip', strip), ('strip-fused', sequence('decoders', {'type': 'Fuse'}, strip)),
            ('metaspace', {'type': 'Metaspace', 'replacement': '\u2581', 'add_prefix_space': True}),
            ('metaspace-fused', sequence('decoders', {'type': 'ByteFallback'}, {'type': 'Fuse'},
                                         {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'never'})),
            ('fallback-metaspace', sequence('decoders', {'type': 'ByteFallback'}, {'type': 'Metaspace',
                                                                                   'replacement': '\u2581'})),
            ('wordpiece', {'type': 'WordPiece', 'prefix': '##', 'cleanup': True}),
            ('llama', sequence('decoders', replace('\u2581', ' '), {'type': 'ByteFallback'}, {'type': 'Fuse'},
                               {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}))):
        if name in ('strip', 'strip-fused'):  # the library panics when it strips more than there is
            made = {**model, 'vocab': [v for v in model['vocab'] if v[0] != ' ']}
            make('decode-' + name, made, ['\u2581ab', 'b x x b', 'x x ab', ' x'], decoder=decoder, texts_too=False)
        else:
            make('decode-' + name, model, texts + ['\u00e9', 'b\u00e9A\u2581'], decoder=decoder,
                 tokens=[added('<s>')], texts_too=False)
    make('post-template', spelled(), [], post=sequence('processors', byte_level(), template(
        [('<s>', [256]), ('two', [257, 258])], [('</s>', [259])])), tokens=[added('<s>'), added('2'), added('3'),
                                                                            added('</s>')])
    make('post-both', spelled(), [], post=sequence('processors', {'type': 'BertProcessing', 'sep': ['b', 256],
                                                                  'cls': ['a', 257]},
                                                  template([('<s>', [258])], [('</s>', [259])])),
         tokens=[added('b'), added('a'), added('<s>'), added('</s>')])


def main():
    models()
    normalizers()
    pretokenizers()
    added_tokens()
    decoders()
    folder = os.path.join(HERE, 'tokenizers')
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.remove(os.path.join(folder, old))
    with open(os.path.join(HERE, 'vectors.jsonl'), 'w') as vectors:
        for name, (tokenizer, texts) in sorted(MADE.items()):
            text = json.dumps(tokenizer, ensure_ascii=False, separators=(',', ':'))
            with open(os.path.join(folder, name + '.json'), 'w') as file:
                file.write(text + '\n')
            library = Tokenizer.from_str(text)
            for s in dict.fromkeys(texts):
                line = {'tokenizer': name, 'text': s, 'ids': library.encode(s, add_special_tokens=False).ids,
                        'ids_special': library.encode(s).ids}
                line['decoded'] = library.decode(line['ids'], skip_special_tokens=False)
                line['decoded_skip_special'] = library.decode(line['ids_special'], skip_special_tokens=True)
                for key, same in (('ids_special', 'ids'), ('decoded_skip_special', 'decoded')):
                    if line[key] == line[same]:
                        del line[key]
                vectors.write(json.dumps(line, separators=(',', ':')) + '\n')


if __name__ == '__main__':
    main()
