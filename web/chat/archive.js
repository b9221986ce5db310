// ZIP archives, as far as exports are packed in them: entries that are stored or deflated, and ZIP64. Only the directory
// and the entries that are asked for are read, so that an archive may be larger than what is taken from it.

const END = 0x06054b50;
const END_64 = 0x06064b50;
const ENTRY = 0x02014b50;
const LARGE = 0xffffffff; // the number stands elsewhere, in 64 bits
const MOST_DIRECTORY = 64 * 1024 * 1024;

async function view(file, from, bytes) {
    if (from < 0 || bytes < 0 || from + bytes > file.size) throw new Error("the archive is cut or damaged");
    return new DataView(await file.slice(from, from + bytes).arrayBuffer());
}

const long = (data, at) => Number(data.getBigUint64(at, true));

/* Where the directory begins and how long it is. */
async function directory(file) {
    const length = Math.min(file.size, 22 + 65535); // behind the last record may stand a comment
    const data = await view(file, file.size - length, length);
    let at = length - 22;
    while (at >= 0 && data.getUint32(at, true) !== END) at--;
    if (at < 0) throw new Error("the archive is cut or damaged");
    const [bytes, from] = [data.getUint32(at + 12, true), data.getUint32(at + 16, true)];
    if (from !== LARGE && bytes !== LARGE) return {from, bytes};
    const found = at < 20 ? null : await view(file, long(data, at - 12), 56);
    if (found?.getUint32(0, true) !== END_64) throw new Error("the archive is cut or damaged");
    return {from: long(found, 48), bytes: long(found, 40)};
}

/* Sizes and place of an entry; those of 64 bits follow one another in a field of their own. */
function numbers(data, at, extra) {
    const told = {bytes: data.getUint32(at + 24, true), packed: data.getUint32(at + 20, true), from: data.getUint32(at + 42, true)};
    let field = extra.begin;
    while (field + 4 <= extra.end && data.getUint16(field, true) !== 1) field += 4 + data.getUint16(field + 2, true);
    for (const name of ["bytes", "packed", "from"]) {
        if (told[name] !== LARGE) continue;
        if (field + 12 > extra.end) throw new Error("the archive is cut or damaged");
        told[name] = long(data, field + 4);
        field += 8;
    }
    return told;
}

/** The files in an archive: {name, bytes, method, locked, packed, from}. */
export async function entries(file) {
    const {from, bytes} = await directory(file);
    if (bytes > MOST_DIRECTORY) throw new Error("the archive has too many files");
    const data = await view(file, from, bytes);
    const all = [];
    for (let at = 0; at + 46 <= bytes && data.getUint32(at, true) === ENTRY; ) {
        const [name, extra, comment] = [28, 30, 32].map((field) => data.getUint16(at + field, true));
        const behind = at + 46 + name;
        if (behind + extra > bytes) throw new Error("the archive is cut or damaged");
        all.push({
            name: new TextDecoder().decode(new Uint8Array(data.buffer, at + 46, name)),
            method: data.getUint16(at + 10, true),
            locked: (data.getUint16(at + 8, true) & 1) !== 0,
            ...numbers(data, at, {begin: behind, end: behind + extra}),
        });
        at = behind + extra + comment;
    }
    return all;
}

/** The text of an entry, which may have no more bytes than so many, whatever it says of itself. */
export async function textOf(file, entry, most) {
    if (entry.locked) throw new Error(`${entry.name} in the archive has a password`);
    if (entry.method !== 0 && entry.method !== 8) throw new Error(`${entry.name} in the archive is packed in an unknown way`);
    const head = await view(file, entry.from, 30);
    const from = entry.from + 30 + head.getUint16(26, true) + head.getUint16(28, true);
    const stored = file.slice(from, from + entry.packed).stream();
    const stream = entry.method === 0 ? stored : stored.pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    const pieces = [];
    for (let left = most; ; ) {
        const {done, value} = await reader.read().catch(() => {
            throw new Error(`${entry.name} in the archive is cut or damaged`);
        });
        if (done) return pieces.join("");
        left -= value.length;
        if (left < 0) {
            reader.cancel().catch(() => {});
            throw new Error(`${entry.name} in the archive is too large`);
        }
        pieces.push(value);
    }
}
