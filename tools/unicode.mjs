#!/usr/bin/env node
// Writes src/text/unicode_data.c: how the versions of Unicode that the tokenizers library is built from class
// characters.
//
// usage: npm install --prefix FOLDER @unicode/unicode-{8,9,14,16}.0.0
//        tools/unicode.mjs FOLDER > src/text/unicode_data.c
//
// Which part of the library has which version stands in docs/tokenizers.md.

import { readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [folder] = process.argv.slice(2);
if (!folder) {
    console.error('usage: tools/unicode.mjs FOLDER');
    process.exit(1);
}

const root = (version) => path.join(path.resolve(folder), 'node_modules', '@unicode', `unicode-${version}.0.0`);
const load = async (version, name) =>
    (await import(pathToFileURL(path.join(root(version), name, 'code-points.mjs')))).default; // an array, or a Map
const set = async (version, ...names) =>
    new Set((await Promise.all(names.map((name) => load(version, name)))).flat());
const without = (a, b) => new Set([...a].filter((c) => !b.has(c)));
const gc = (...names) => names.map((name) => `General_Category/${name}`);
const hex = (c) => c.toString(16).toUpperCase().padStart(2, '0');

const ranges = (chars) => {
    const out = [];
    for (const c of [...chars].sort((a, b) => a - b)) {
        if (out.length && out.at(-1)[1] === c - 1) out.at(-1)[1] = c;
        else out.push([c, c]);
    }
    return out;
};

// Lines of at most 120 columns.
const fill = (items) => {
    const lines = [];
    let line = '   ';
    for (const item of items) {
        if (line.length + item.length + 2 > 120) {
            lines.push(line);
            line = '   ';
        }
        line += ` ${item},`;
    }
    return [...lines, line].join('\n');
};

const table = (name, comment, chars) => {
    const list = ranges(chars);
    return `/* ${comment} */
static const mt_unicode_range ${name}[] = {
${fill(list.map(([first, last]) => `{0x${hex(first)}, 0x${hex(last)}}`))}
};
`;
};

// Runs of characters whose lower case is as far away: one after the other, or every second one.
const lowerRuns = async () => {
    const map = [...(await load(16, 'Simple_Case_Mapping/Lowercase'))]
        .sort((a, b) => a[0] - b[0])
        .filter(([c]) => c >= 0x80);
    const runs = [];
    for (const [c, lower] of map) {
        const run = runs.at(-1), delta = lower - c, step = run ? c - run.last : 0;
        if (run && run.delta === delta && (step === run.step || (run.first === run.last && step <= 2)))
            Object.assign(run, { last: c, step });
        else runs.push({ first: c, last: c, delta, step: 1 });
    }
    return runs;
};

const short = {
    Cased_Letter: 'LC', Close_Punctuation: 'Pe', Connector_Punctuation: 'Pc', Control: 'Cc', Currency_Symbol: 'Sc',
    Dash_Punctuation: 'Pd', Decimal_Number: 'Nd', Enclosing_Mark: 'Me', Final_Punctuation: 'Pf', Format: 'Cf',
    Initial_Punctuation: 'Pi', Letter: 'L', Letter_Number: 'Nl', Line_Separator: 'Zl', Lowercase_Letter: 'Ll',
    Mark: 'M', Math_Symbol: 'Sm', Modifier_Letter: 'Lm', Modifier_Symbol: 'Sk', Nonspacing_Mark: 'Mn', Number: 'N',
    Open_Punctuation: 'Ps', Other: 'C', Other_Letter: 'Lo', Other_Number: 'No', Other_Punctuation: 'Po',
    Other_Symbol: 'So', Paragraph_Separator: 'Zp', Private_Use: 'Co', Punctuation: 'P', Separator: 'Z',
    Space_Separator: 'Zs', Spacing_Mark: 'Mc', Symbol: 'S', Titlecase_Letter: 'Lt', Unassigned: 'Cn',
    Uppercase_Letter: 'Lu',
};

// What came since the oldest release of PCRE2 that is used, and what went: by character, the properties' names.
const now = new Map(), was = new Map();
const note = (map, chars, name) => {
    for (const c of chars) map.set(c, [...(map.get(c) ?? []), name]);
};

const property = async (native, file) => {
    const before = await set(14, file), after = await set(16, file);
    note(now, without(after, before), native);
    note(was, without(before, after), native);
};

// A group of categories is what its members are: its name is enough.
const properties = async () => {
    const rows = [];
    for (const [long, name] of Object.entries(short)) {
        if (name.length === 2 && name !== 'LC') await property(name, `General_Category/${long}`);
        rows.push([name, long]);
    }
    for (const name of ['Alphabetic', 'Lowercase', 'Uppercase', 'Ideographic', 'Emoji', 'Emoji_Presentation']) {
        await property(name, `Binary_Property/${name}`);
        rows.push([name]);
    }
    for (const entry of readdirSync(path.join(root(14), 'Script'), { withFileTypes: true }))
        if (entry.isDirectory() && entry.name !== 'Unknown') {
            await property(`sc:${entry.name}`, `Script/${entry.name}`); // not its extensions
            rows.push([`sc:${entry.name}`]);
        }
    return rows;
};

// Runs of characters that gained and lost the same properties.
const changes = () => {
    const out = [];
    for (const c of [...new Set([...now.keys(), ...was.keys()])].sort((a, b) => a - b)) {
        const names = [now, was].map((map) => (map.get(c) ?? []).join(' ')), run = out.at(-1);
        if (run && run.last === c - 1 && run.names.join() === names.join()) run.last = c;
        else out.push({ first: c, last: c, names });
    }
    return out;
};

const words = await set(16, ...gc('Mark', 'Decimal_Number', 'Connector_Punctuation'), 'Binary_Property/Alphabetic',
    'Binary_Property/Join_Control');
const unassigned = await set(9, ...gc('Unassigned'));
const pages = Array(128).fill(0);
for (const c of unassigned) if (c < 0x10000) pages[c >> 9] |= 1 << ((c >> 6) & 7);
const runs = await lowerRuns();
const rows = await properties();

console.log(`/* Written by tools/unicode.mjs. Do not edit. unicode_data.h says what each table is for. */
#include "text/unicode_data.h"

#include "base/compiler.h"

/* clang-format off */
${table('punct_8', 'P* of Unicode 8', await set(8, ...gc('Punctuation')))}
${table('other_8', 'Cc, Cf and Co of Unicode 8', await set(8, ...gc('Control', 'Format', 'Private_Use')))}
${table('overlay_8', 'Mn of Unicode 8', await set(8, ...gc('Nonspacing_Mark')))}
${table('mark_9', 'M* of Unicode 9', await set(9, ...gc('Mark')))}
${table('unassigned_9', 'Cn of Unicode 9', unassigned)}
${table('numeric_16', 'N* of Unicode 16', await set(16, ...gc('Number')))}
${table('word_16', 'Alphabetic, M*, Nd, Pc and Join_Control of Unicode 16', words)}
const mt_unicode_set mt_unicode_sets[MT_UNICODE_SETS] = {
    [MT_UNICODE_PUNCT_8] = {punct_8, MT_COUNT(punct_8)},
    [MT_UNICODE_OTHER_8] = {other_8, MT_COUNT(other_8)},
    [MT_UNICODE_OVERLAY_8] = {overlay_8, MT_COUNT(overlay_8)},
    [MT_UNICODE_MARK_9] = {mark_9, MT_COUNT(mark_9)},
    [MT_UNICODE_UNASSIGNED_9] = {unassigned_9, MT_COUNT(unassigned_9)},
    [MT_UNICODE_NUMERIC_16] = {numeric_16, MT_COUNT(numeric_16)},
    [MT_UNICODE_WORD_16] = {word_16, MT_COUNT(word_16)},
};

const uint8_t mt_unicode_pages[MT_UNICODE_PAGES] = {
${fill(pages.map((bits) => `0x${hex(bits)}`))}
};

const mt_unicode_run mt_unicode_lower[] = {
${fill(runs.map((r) => `{{0x${hex(r.first)}, 0x${hex(r.last)}}, ${r.step}, ${r.delta}}`))}
};
const size_t mt_unicode_lower_count = MT_COUNT(mt_unicode_lower);

const mt_unicode_change mt_unicode_changes[] = {
${fill(changes().map((r) => `{{0x${hex(r.first)}, 0x${hex(r.last)}}, "${r.names[0]}", "${r.names[1]}"}`))}
};
const size_t mt_unicode_change_count = MT_COUNT(mt_unicode_changes);

const mt_unicode_property mt_unicode_properties[] = {
${fill(rows.map(([name, long]) => (long ? `{"${name}", "${long}"}` : `{"${name}", NULL}`)))}
};
const size_t mt_unicode_property_count = MT_COUNT(mt_unicode_properties);
/* clang-format on */`);
