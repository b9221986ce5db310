// Code: its language, a button that copies it, and its words in a few colours.

import {announce, h, icon} from "../base/dom.js";

const MOST = 60000; // characters; longer code stays black

const WORDS = {
    c: `auto bool break case char const continue default do double else enum extern false float for goto if inline
        int long register return short signed sizeof static struct switch true typedef union unsigned void volatile
        while class delete namespace new private protected public template this throw try catch using virtual
        nullptr`,
    js: `async await break case catch class const continue default delete do else export extends false finally for
        from function get if import in instanceof interface let new null of return set static super switch this
        throw true try type typeof undefined var void while yield`,
    python: `and as assert async await break class continue def del elif else except False finally for from global if
        import in is lambda None nonlocal not or pass raise return self True try while with yield`,
    rust: `as async await break const continue crate else enum extern false fn for if impl in let loop match mod move
        mut pub ref return self Self static struct super trait true type unsafe use where while`,
    go: `break case chan const continue default defer else fallthrough false for func go goto if import interface map
        nil package range return select struct switch true type var`,
    java: `abstract boolean break byte case catch char class const continue default do double else enum extends false
        final finally float for if implements import instanceof int interface long new null package private
        protected public return short static super switch this throw throws true try void while`,
    shell: `case do done elif else esac exit export fi for function if in local return set shift then until while`,
    sql: `select from where group by order having insert into values update set delete create table drop alter join
        left right inner outer on as and or not null limit distinct union all primary key`,
    json: "true false null",
};
const NAMES = {
    cpp: "c",
    "c++": "c",
    h: "c",
    hpp: "c",
    cs: "java",
    kotlin: "java",
    swift: "rust",
    javascript: "js",
    typescript: "js",
    ts: "js",
    jsx: "js",
    tsx: "js",
    py: "python",
    rs: "rust",
    golang: "go",
    sh: "shell",
    bash: "shell",
    zsh: "shell",
    console: "shell",
    jsonc: "json",
};
const HASH = new Set(["python", "shell"]);

/* Of a line, each alternative without a way back: comments, strings, numbers, words. What goes on over lines is opened
   by a piece and closed by what PAIRS has for it. */
const SLASHED =
    /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$)|`(?:[^`\\]|\\.)*(?:`|\\?$))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const HASHED =
    /(#.*)|("""(?:.*?"""|.*$)|"(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const DASHED = /(--.*)|("(?:[^"\\]|\\.)*(?:"|\\?$)|'(?:[^'\\]|\\.)*(?:'|\\?$))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const KINDS = ["comment", "string", "number", "word"];
const PAIRS = [
    ["/*", "*/", "comment", SLASHED],
    ["`", "`", "string", SLASHED],
    ['"""', '"""', "string", HASHED],
];
const LONG = 2000; // characters of a line; a longer one stays black

/* Colours lines one after another. */
class Colours {
    constructor(language) {
        const name = NAMES[language] ?? language;
        this.words = WORDS[name] ? new Set(WORDS[name].split(/\s+/)) : null;
        this.folds = name === "sql";
        this.pattern = HASH.has(name) ? HASHED : this.folds ? DASHED : SLASHED;
        this.open = null; // the pair that a line before has opened and not closed
        this.length = 0;
    }

    /** The nodes of a line. ended: it is whole, and what it opens is open in the next one. */
    line(text, ended) {
        this.length += ended ? text.length + 1 : 0;
        if (!this.words || text.length > LONG || this.length > MOST) return [text];
        const nodes = [];
        let {open} = this;
        let at = 0;
        if (open) {
            const end = text.indexOf(open[1]);
            at = end < 0 ? text.length : end + open[1].length;
            nodes.push(h("span", {class: `code-${open[2]}`}, text.slice(0, at)));
            if (end >= 0) open = null;
        }
        this.pattern.lastIndex = at;
        for (let found; !open && (found = this.pattern.exec(text));) {
            const kind = KINDS[found.slice(1).findIndex((group) => group !== undefined)];
            if (kind === "word" && !this.words.has(this.folds ? found[0].toLowerCase() : found[0])) continue;
            nodes.push(text.slice(at, found.index), h("span", {class: `code-${kind}`}, found[0]));
            at = found.index + found[0].length;
            open = this.opened(found[0]);
        }
        if (ended) this.open = open;
        nodes.push(text.slice(at));
        return nodes.filter((node) => node !== "");
    }

    opened(text) {
        const pair = PAIRS.find((each) => each[3] === this.pattern && text.startsWith(each[0]));
        return pair && (text.length < pair[0].length + pair[1].length || !text.endsWith(pair[1])) ? pair : null;
    }
}

/* Where the page came over plain HTTP from another machine, browsers know no clipboard but that of old. */
async function toClipboard(text) {
    if (navigator.clipboard) {
        await navigator.clipboard.writeText(text);
        return;
    }
    const field = h("textarea", {class: "unseen", value: text});
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("no clipboard");
}

/** Puts a text on the clipboard, and says so on the button. */
export async function copyText(text, button) {
    try {
        await toClipboard(text);
        announce("Copied");
        const before = [...button.childNodes];
        button.replaceChildren(icon("check"), ...before.slice(1));
        setTimeout(() => button.replaceChildren(...before), 1200);
    } catch {
        announce("The browser does not allow copying here");
    }
}

const CHUNK = 50; // lines of an element: what is appended makes the browser lay out no more than that anew

/** Code that may still grow: {element, show(text)}. Lines that are whole stay as they are. */
export class CodeView {
    constructor(language) {
        this.language = language.toLowerCase();
        this.rest = []; // nodes of the line that is not whole
        this.code = h("code", {});
        this.clear();
        const copy = h(
            "button",
            {type: "button", class: "quiet small", onclick: () => copyText(this.code.textContent, copy)},
            icon("copy"),
            "Copy",
        );
        this.element = h(
            "figure",
            {class: "code"},
            h("figcaption", {}, h("span", {}, language || "code"), copy),
            h("pre", {tabindex: "0", role: "region", "aria-label": `${language || "code"}`}, this.code),
        );
    }

    clear() {
        this.colours = new Colours(this.language);
        this.text = ""; // the lines that are whole
        this.count = 0;
        this.code.replaceChildren();
    }

    append(nodes) {
        const chunk = Math.floor(this.count / CHUNK);
        if (this.code.childElementCount <= chunk) this.code.append(h("span", {class: "chunk"}));
        this.code.lastChild.append(...nodes);
    }

    show(text) {
        for (const node of this.rest) node.remove();
        if (!text.startsWith(this.text)) this.clear();
        const whole = text.lastIndexOf("\n") + 1;
        if (whole > this.text.length)
            for (const line of text.slice(this.text.length, whole - 1).split("\n")) {
                this.append([...this.colours.line(line, true), "\n"]);
                this.count++;
            }
        this.text = text.slice(0, whole);
        this.rest = this.colours
            .line(text.slice(whole), false)
            .map((node) => (typeof node === "string" ? document.createTextNode(node) : node));
        if (this.rest.length > 0) this.append(this.rest);
    }
}
