// What stands within a line of Markdown, as nodes: emphasis, code, links, formulas. HTML is text here as any other, and
// pictures are links: nothing that is read from a text loads anything. Time is linear in the length of the text,
// whoever wrote it: each search that fails is either bounded or never made again.

import {h} from "../base/dom.js";
import {formula} from "./math.js";
import {LETTERS, OPERATORS, table} from "./symbols.js";

const MARKS = 4000; // of emphasis that are looked at in one text; those behind are plain
const URL_MOST = 2048; // characters of a link
const MATH_MOST = 2000;
const DEPTH = 8;
const ESCAPED = /[!-/:-@[-`{-~]/;
const SPECIAL = /[\\`*_~[\]!<$&h\n]/g;
const ENTITIES = table(`
amp=& lt=< gt=> quot=" apos=' nbsp=\u00a0 ensp=\u2002 emsp=\u2003 thinsp=\u2009 shy=\u00ad zwj=\u200d zwnj=\u200c lrm=\u200e
rlm=\u200f mdash=— ndash=– hellip=… copy=© reg=® trade=™ deg=° plusmn=± micro=µ para=¶ sect=§ middot=· bull=• laquo=« raquo=»
lsaquo=‹ rsaquo=› ldquo=“ rdquo=” lsquo=‘ rsquo=’ sbquo=‚ bdquo=„ iexcl=¡ iquest=¿ cent=¢ pound=£ yen=¥ euro=€ curren=¤
frac12=½ frac14=¼ frac34=¾ sup1=¹ sup2=² sup3=³ ordf=ª ordm=º not=¬ divide=÷ minus=− lowast=∗ radic=√ sum=∑ prod=∏ int=∫
larr=← uarr=↑ rarr=→ darr=↓ harr=↔ lArr=⇐ rArr=⇒ hArr=⇔ isin=∈ empty=∅ cup=∪ cap=∩ sub=⊂ sup=⊃ and=∧ or=∨ infin=∞ part=∂
asymp=≈ ne=≠ le=≤ ge=≥ equiv=≡ there4=∴ dagger=† Dagger=‡ permil=‰ szlig=ß aelig=æ AElig=Æ oelig=œ OElig=Œ oslash=ø Oslash=Ø
eth=ð thorn=þ spades=♠ clubs=♣ hearts=♥ diams=♦ check=✓ cross=✗ star=☆ phone=☎ lang=⟨ rang=⟩ vert=| lbrace={ rbrace=} num=#
excl=! comma=, period=. colon=: semi=; lpar=( rpar=) lsqb=[ rsqb=] ast=* plus=+ equals=\u003d dollar=$ percnt=% sol=/ bsol=\\
lowbar=_ grave=\` tilde=˜ circ=ˆ Tab=\t
`);
const MARKED = {acute: "\u0301", grave: "\u0300", circ: "\u0302", tilde: "\u0303", uml: "\u0308", cedil: "\u0327", ring: "\u030a",
    caron: "\u030c"};

/* The character that an entity names: &eacute; is an e with an acute. */
function named(name) {
    const known = ENTITIES.get(name) ?? LETTERS.get(name) ?? OPERATORS.get(name);
    const [, letter, mark] = /^([A-Za-z])([a-z]+)$/.exec(name) ?? [];
    return known ?? (Object.hasOwn(MARKED, mark ?? "") ? (letter + MARKED[mark]).normalize("NFC") : null);
}

/** An address that a link may have, or null: no script, no file, no data. */
export function safeUrl(text) {
    if (text.length > URL_MOST || !/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
    try {
        const url = new URL(text);
        return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    } catch {
        return null;
    }
}

export function link(href, children) {
    return h("a", {href, rel: "noopener noreferrer nofollow", target: "_blank", title: href}, children);
}

/* A text is cut into pieces: strings, nodes, and marks {mark, count, opens, closes} that may become emphasis. */
class Scanner {
    constructor(text, depth) {
        this.text = text;
        this.depth = depth;
        this.at = 0;
        this.pieces = [];
        this.brackets = []; // {piece, at, image}: "[" that may open a link
        this.marks = 0;
        this.missing = new Map(); // what was searched for in vain: it is not there further on either
    }

    say(text) {
        if (text && typeof this.pieces.at(-1) === "string") this.pieces[this.pieces.length - 1] += text;
        else if (text) this.pieces.push(text);
    }

    /** The place of what closes something, from `from` on; -1 where there is none. */
    find(what, from) {
        if ((this.missing.get(what) ?? Infinity) <= from) return -1;
        const found = this.text.indexOf(what, from);
        if (found < 0) this.missing.set(what, from);
        return found;
    }

    match(pattern) {
        pattern.lastIndex = this.at;
        return pattern.exec(this.text);
    }

    run() {
        while (this.at < this.text.length) {
            SPECIAL.lastIndex = this.at;
            const next = SPECIAL.exec(this.text)?.index ?? this.text.length;
            this.say(this.text.slice(this.at, next));
            this.at = next;
            if (next < this.text.length && !this.special(this.text[next])) {
                this.say(this.text[next]);
                this.at = next + 1;
            }
        }
        return emphasised(this.pieces);
    }

    special(c) {
        switch (c) {
            case "\\":
                return this.escape();
            case "`":
                return this.code();
            case "*":
            case "_":
            case "~":
                return this.emphasis(c);
            case "!":
                return this.text[this.at + 1] === "[" && this.open(true);
            case "[":
                return this.note() || this.open(false);
            case "]":
                return this.close();
            case "<":
                return this.angle();
            case "$":
                return this.dollar();
            case "&":
                return this.entity();
            case "h":
                return this.bare();
            default:
                return this.node(h("br"), this.at + 1); // a line's end
        }
    }

    node(node, at) {
        this.pieces.push(node);
        this.at = at;
        return true;
    }

    escape() {
        const next = this.text[this.at + 1];
        if (next === "(" || next === "[") {
            const end = this.find(next === "(" ? "\\)" : "\\]", this.at + 2);
            if (end > 0 && end - this.at < MATH_MOST)
                return this.node(
                    formula(this.text.slice(this.at + 2, end), next === "[", this.text.slice(this.at, end + 2)),
                    end + 2,
                );
        }
        if (next === undefined || !ESCAPED.test(next)) return false;
        this.say(next);
        this.at += 2;
        return true;
    }

    code() {
        const ticks = this.match(/`+/y)[0];
        const run = `run of ${ticks.length}`;
        for (let end = this.missing.has(run) ? -1 : this.find(ticks, this.at + ticks.length); end > 0;) {
            let after = end + ticks.length;
            while (this.text[after] === "`") after++;
            if (after - end === ticks.length) {
                let text = this.text.slice(this.at + ticks.length, end).replaceAll("\n", " ");
                if (text.startsWith(" ") && text.endsWith(" ") && text.trim()) text = text.slice(1, -1);
                return this.node(h("code", {}, text), after);
            }
            end = this.find(ticks, after);
        }
        this.missing.set(run, this.at); // longer ones may be there, which are found again and again
        this.say(ticks);
        this.at += ticks.length;
        return true;
    }

    emphasis(c) {
        let end = this.at;
        while (this.text[end] === c) end++;
        const count = end - this.at;
        const before = this.text[this.at - 1] ?? " ",
            after = this.text[end] ?? " ";
        const blankBefore = /\s/.test(before),
            blankAfter = /\s/.test(after);
        const stopBefore = /[\p{P}\p{S}]/u.test(before),
            stopAfter = /[\p{P}\p{S}]/u.test(after);
        const left = !blankAfter && (!stopAfter || blankBefore || stopBefore);
        const right = !blankBefore && (!stopBefore || blankAfter || stopAfter);
        if (++this.marks > MARKS || (c === "~" && count !== 2) || (!left && !right)) {
            this.say(this.text.slice(this.at, end));
        } else {
            this.pieces.push({
                mark: c,
                count,
                opens: left && (c !== "_" || !right || stopBefore),
                closes: right && (c !== "_" || !left || stopAfter),
            });
        }
        this.at = end;
        return true;
    }

    /** A footnote's number. */
    note() {
        const found = this.match(/\[\^([\w-]{1,32})\]/y);
        return found ? this.node(h("sup", {}, found[1]), this.at + found[0].length) : false;
    }

    open(image) {
        this.brackets.push({piece: this.pieces.length, image});
        this.pieces.push({mark: image ? "![" : "["});
        this.at += image ? 2 : 1;
        return true;
    }

    close() {
        const bracket = this.brackets.pop();
        const target = bracket && this.text[this.at + 1] === "(" ? this.target(this.at + 2) : null;
        if (!target) {
            this.say("]");
            this.at++;
            return true;
        }
        const inside = emphasised(this.pieces.splice(bracket.piece).slice(1));
        const href = safeUrl(target.url);
        if (!bracket.image && href) {
            this.brackets.length = 0; // no link within a link
            return this.node(link(href, inside), target.end);
        }
        if (bracket.image && href)
            return this.node(link(href, ["picture: ", inside.length ? inside : target.url]), target.end);
        this.pieces.push(...inside, ` (${target.url.slice(0, 200)})`); // what no link may lead to is shown as it is
        this.at = target.end;
        return true;
    }

    /** The address behind "](", whose parentheses balance, with or without a title. */
    target(from) {
        if (this.find(")", from) < 0) return null;
        const rest = this.text.slice(from, from + URL_MOST + 200);
        let depth = 1,
            end = 0;
        for (; end < rest.length && rest[end] !== "\n"; end++) {
            depth += rest[end] === "(" ? 1 : rest[end] === ")" ? -1 : 0;
            if (depth === 0)
                return {
                    url: rest
                        .slice(0, end)
                        .trim()
                        .replace(/\s+["'(].*$/, "")
                        .replace(/^<|>$/g, ""),
                    end: from + end + 1,
                };
        }
        return null;
    }

    angle() {
        const found = this.match(/<((?:https?:\/\/|mailto:)[^\s<>]{1,2048})>/iy);
        const href = found && safeUrl(found[1]);
        if (href) return this.node(link(href, found[1]), this.at + found[0].length);
        const broken = this.match(/<br ?\/?>/iy);
        return broken ? this.node(h("br"), this.at + broken[0].length) : false;
    }

    /* "$5 and $6" is money: a formula's "$" has no blank inside of it, and no digit behind its end. */
    dollar() {
        const sign = this.text[this.at + 1] === "$" ? "$$" : "$";
        const from = this.at + sign.length;
        const end = /\s/.test(this.text[from] ?? " ") && sign === "$" ? -1 : this.find(sign, from);
        const source = end > from && end - from < MATH_MOST ? this.text.slice(from, end) : null;
        if (
            !source ||
            source.includes("\n\n") ||
            (sign === "$" && (/[\s\\]$/.test(source) || /\d/.test(this.text[end + 1] ?? "")))
        )
            return false;
        return this.node(formula(source, sign === "$$", sign + source + sign), end + sign.length);
    }

    entity() {
        const found = this.match(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,12}));/iy);
        if (!found) return false;
        const code = found[1] ? Number(found[1]) : found[2] ? parseInt(found[2], 16) : 0;
        const text = code ? (code > 31 && code < 0x110000 ? String.fromCodePoint(code) : null) : named(found[3]);
        if (!text) return false;
        this.say(text);
        this.at += found[0].length;
        return true;
    }

    bare() {
        if (/\w/.test(this.text[this.at - 1] ?? "") || this.brackets.length > 0) return false;
        const found = this.match(/https?:\/\/[^\s<>"`]{1,2048}/iy);
        let text = found?.[0].replace(/[.,;:!?'*_~]+$/, "");
        if (text?.endsWith(")") && !text.includes("(")) text = text.slice(0, -1);
        const href = text && safeUrl(text);
        return href ? this.node(link(href, text), this.at + text.length) : false;
    }
}

const TAGS = {"*1": "em", _1: "em", "*2": "strong", _2: "strong", "~2": "del"};

/* Each mark that closes looks back for its own kind; where none opened, none is looked for so far back again. */
function emphasised(pieces) {
    const out = [];
    const floor = {};
    for (const piece of pieces) {
        if (!piece.mark || !piece.closes) {
            out.push(piece);
            continue;
        }
        let left = piece.count;
        while (left > 0) {
            let open = out.length - 1;
            while (open >= (floor[piece.mark] ?? 0) && !(out[open].mark === piece.mark && out[open].opens)) open--;
            if (open < (floor[piece.mark] ?? 0)) {
                floor[piece.mark] = out.length;
                break;
            }
            const used = Math.min(left, out[open].count, 2);
            const inside = out.splice(open + 1).map(plain);
            const node = h(TAGS[piece.mark + used] ?? "em", {}, inside);
            if ((out[open].count -= used) === 0) out.pop();
            out.push(node);
            for (const mark of Object.keys(floor)) floor[mark] = Math.min(floor[mark], out.length);
            left -= used;
        }
        if (left > 0) out.push({...piece, count: left, closes: false});
    }
    return out.map(plain);
}

function plain(piece) {
    return piece.mark ? piece.mark.repeat(piece.count ?? 1) : piece;
}

/** The nodes and strings of a text. */
export function inline(text, depth = 0) {
    return depth > DEPTH ? [text] : new Scanner(text, depth).run();
}

const PIECE = 300; // characters of a piece, at least
const LONGEST = 4000; // after so many it ends at the next blank, whatever is open
const TRIES = 8;
const ENDS = /[.,;:!?)]\s+|[。，！？、；：]|\n/g;

/* What may be closed by what comes: a mark that stands between blanks, or within a word, is none. */
function isOpen(node) {
    return typeof node === "string" && /[`$*_~[]|\\[([]/.test(node.replaceAll(/(?<=\s)[*_~]+(?=\s)|(?<=\w)_+(?=\w)/g, ""));
}

function pieceEnd(text, from) {
    ENDS.lastIndex = from + PIECE;
    for (let tries = 0, found; tries < TRIES && (found = ENDS.exec(text)); tries++) {
        if (ENDS.lastIndex >= text.length) return -1;
        if (ENDS.lastIndex > from + LONGEST) break;
        const end = ENDS.lastIndex;
        if (!inline(text.slice(from, end)).some(isOpen)) return end;
    }
    const blank = /\s+/g;
    blank.lastIndex = from + LONGEST;
    return blank.test(text) && blank.lastIndex < text.length ? blank.lastIndex : -1;
}

/** A long text in pieces that are read by themselves, where nothing reaches from one into the next. More text behind
    leaves all but the last as they are. */
export function pieces(text) {
    const found = [];
    let from = 0;
    for (let end = 0; text.length - from > PIECE && (end = pieceEnd(text, from)) > 0; from = end)
        found.push(text.slice(from, end));
    return [...found, text.slice(from)];
}
