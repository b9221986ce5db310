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

// One pass, each alternative without a way back: comments, strings, numbers, words.
const SLASHED =
    /(\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const HASHED = /(#[^\n]*)|("""[^]*?(?:"""|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const DASHED = /(--[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const KINDS = ["comment", "string", "number", "word"];

function coloured(text, language) {
    const name = NAMES[language] ?? language;
    if (!WORDS[name] || text.length > MOST) return [text];
    const words = new Set(WORDS[name].split(/\s+/));
    const nodes = [];
    let at = 0;
    for (const found of text.matchAll(HASH.has(name) ? HASHED : name === "sql" ? DASHED : SLASHED)) {
        const kind = KINDS[found.slice(1).findIndex((group) => group !== undefined)];
        if (kind === "word" && !words.has(name === "sql" ? found[0].toLowerCase() : found[0])) continue;
        nodes.push(text.slice(at, found.index), h("span", {class: `code-${kind}`}, found[0]));
        at = found.index + found[0].length;
    }
    nodes.push(text.slice(at));
    return nodes;
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

export function codeBlock(text, language) {
    const copy = h(
        "button",
        {type: "button", class: "quiet small", onclick: () => copyText(text, copy)},
        icon("copy"),
        "Copy",
    );
    return h(
        "figure",
        {class: "code"},
        h("figcaption", {}, h("span", {}, language || "code"), copy),
        h(
            "pre",
            {tabindex: "0", role: "region", "aria-label": `${language || "code"}`},
            h("code", {}, coloured(text, language.toLowerCase())),
        ),
    );
}
