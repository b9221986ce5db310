// Formulas: the part of TeX that answers use, as MathML. What is beyond it is shown as its source.

import {ACCENTS, FENCES, FUNCTIONS, INTEGRALS, LARGE, LETTERS, LIMITS, OPERATORS, SPACES, styled} from "./symbols.js";
import {h} from "../base/dom.js";
import {chemistry, unit} from "./science.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const DEPTH = 40;
const MOST = 4000; // characters of a formula

function m(tag, attributes, ...children) {
    const node = document.createElementNS(MATHML, tag);
    for (const [name, value] of Object.entries(attributes ?? {})) node.setAttribute(name, value);
    node.append(...children.flat());
    return node;
}

const BIG = {big: 1.2, Big: 1.8, bigg: 2.4, Bigg: 3};

/* What TeX writes in words with a backslash. */
function plain(words) {
    return words.replaceAll(/\\([%&#$_{} ])/g, "$1").replaceAll("~", "\u00a0").replaceAll(/\\[a-zA-Z]+ ?|[{}]/g, "");
}

/** Not a formula that can be set. */
class Beyond extends Error {}

const TOKEN = /\s+|\\([A-Za-z]+)\*?|\\([^A-Za-z])|(\d+(?:\.\d+)?)|([^\s\\])/guy;

function tokens(text) {
    const found = [];
    TOKEN.lastIndex = 0;
    for (let each; TOKEN.lastIndex < text.length;) {
        const from = TOKEN.lastIndex;
        each = TOKEN.exec(text);
        if (!each) throw new Beyond("a lonely backslash");
        const name = each[1] ?? each[2];
        found.push({
            name,
            number: each[3],
            text: each[4],
            blank: name === undefined && !each[3] && !each[4],
            from,
            to: TOKEN.lastIndex,
        });
    }
    return found;
}

/* Commands of no arguments that a formula defines for itself, put in their places. */
function defined(text) {
    const known = new Map();
    const define = /\\(?:(?:re)?newcommand\*?\s*\{?|def\s*|(DeclareMathOperator)\*?\s*\{?)\\([A-Za-z]+)\}?\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}/g;
    const rest = text.replaceAll(define, (whole, operator, name, meaning) => {
        known.set(name, operator ? `\\operatorname{${meaning}}` : `{${meaning}}`);
        return "";
    });
    return known.size > 0 ? rest.replaceAll(/\\([A-Za-z]+)/g, (whole, name) => known.get(name) ?? whole) : text;
}

class Parser {
    constructor(text, display) {
        this.source = defined(text);
        this.all = tokens(this.source);
        this.at = 0;
        this.display = display;
        this.depth = 0;
    }

    peek() {
        while (this.all[this.at]?.blank) this.at++;
        return this.all[this.at];
    }

    next() {
        const token = this.peek();
        this.at++;
        return token;
    }

    take(text) {
        if (this.peek()?.text !== text) return false;
        this.at++;
        return true;
    }

    /** Everything until one of the names or characters that end it, which is left. */
    row(ends) {
        const nodes = [];
        if (++this.depth > DEPTH) throw new Beyond("too deep");
        let above = null; // "{a \\over b}": what stands before the command is the upper part
        for (let token; (token = this.peek()); ) {
            if (ends.includes(token.name === undefined ? token.text : `\\${token.name}`)) break;
            if (!above && ["over", "choose", "atop"].includes(token.name)) above = {name: this.next().name, nodes: nodes.splice(0)};
            else nodes.push(this.scripts(this.atom(), token));
        }
        this.depth--;
        if (!above) return nodes;
        const line = above.name === "over" ? {} : {linethickness: "0"};
        const both = m("mfrac", line, m("mrow", {}, above.nodes), m("mrow", {}, nodes));
        return above.name === "choose" ? [m("mo", {}, "("), both, m("mo", {}, ")")] : [both];
    }

    /** What is between braces, or else one thing: of a number its first digit, as \\frac12 is a half. */
    group() {
        const token = this.peek();
        if (token?.number?.length > 1) {
            this.all[this.at] = {...token, number: token.number.slice(1), from: token.from + 1};
            return m("mn", {}, token.number[0]);
        }
        if (!this.take("{")) return this.atom();
        const nodes = this.row(["}"]);
        if (!this.take("}")) throw new Beyond("no closing brace");
        return nodes.length === 1 ? nodes[0] : m("mrow", {}, nodes);
    }

    /** What stands between braces, as it is. */
    words() {
        if (!this.take("{")) throw new Beyond("braces are missing");
        const from = this.all[this.at - 1].to;
        let depth = 1;
        for (; this.at < this.all.length; this.at++) {
            const token = this.all[this.at];
            depth += token.text === "{" ? 1 : token.text === "}" ? -1 : 0;
            if (depth === 0) return this.source.slice(from, this.all[this.at++].from);
        }
        throw new Beyond("no closing brace");
    }

    scripts(base, token) {
        let below = null,
            above = null;
        for (;;) {
            if (!below && this.take("_")) below = this.group();
            else if (!above && this.take("^")) above = this.group();
            else if (!above && this.take("'")) above = this.primes();
            else if (["limits", "nolimits"].includes(this.peek()?.name)) this.next();
            else break;
        }
        if (!below && !above) return base;
        const stacked =
            (this.display && (LARGE.has(token.name) || LIMITS.has(token.name))) ||
            ["underbrace", "overbrace"].includes(token.name);
        const tag = stacked
            ? below && above
                ? "munderover"
                : below
                  ? "munder"
                  : "mover"
            : below && above
              ? "msubsup"
              : below
                ? "msub"
                : "msup";
        return m(tag, {}, [base, below, above].filter(Boolean));
    }

    primes() {
        let text = "′";
        while (this.take("'")) text += "′";
        return m("mo", {}, text);
    }

    atom() {
        const token = this.next();
        if (!token) throw new Beyond("something is missing");
        if (token.number) return m("mn", {}, token.number);
        if (token.name !== undefined) return this.command(token.name);
        if (token.text === "{") {
            this.at--;
            return this.group();
        }
        if (token.text === "^" || token.text === "_") {
            this.at--;
            return m("mrow", {});
        }
        if ("}&#$".includes(token.text)) throw new Beyond(`${token.text} where it means nothing`);
        if (/\p{L}/u.test(token.text)) return m("mi", {}, token.text);
        return m("mo", "()[]|".includes(token.text) ? {stretchy: "false"} : {}, token.text === "-" ? "−" : token.text);
    }

    /** The nodes of TeX that something else stands for. */
    instead(source) {
        const inner = new Parser(source, this.display);
        inner.depth = this.depth;
        return m("mrow", {}, inner.row([]));
    }

    /** What is between brackets, which may be missing, as it is; else null. */
    optional() {
        if (!this.take("[")) return null;
        const from = this.all[this.at - 1].to;
        for (let token; (token = this.next()); ) if (token.text === "]") return this.source.slice(from, token.from);
        throw new Beyond("no closing bracket");
    }

    command(name) {
        if (LETTERS.has(name)) return m("mi", /^[A-Z]/.test(name) ? {mathvariant: "normal"} : {}, LETTERS.get(name));
        if (OPERATORS.has(name)) return m("mo", {}, OPERATORS.get(name));
        if (LARGE.has(name)) return m("mo", {largeop: "true", movablelimits: "false"}, LARGE.get(name));
        if (INTEGRALS.has(name)) return m("mo", {largeop: "true"}, INTEGRALS.get(name));
        if (FUNCTIONS.has(name) || LIMITS.has(name))
            return m("mi", {}, name.replace(/^(lim|arg)(sup|inf|max|min)$/, "$1 $2"));
        if (FENCES.has(name)) return m("mo", {stretchy: "false"}, FENCES.get(name));
        if (SPACES.has(name)) return m("mspace", {width: `${SPACES.get(name)}em`});
        if (ACCENTS.has(name))
            return m(
                "mover",
                {accent: "true"},
                this.group(),
                m("mo", {stretchy: String(/^(wide|over)/.test(name))}, ACCENTS.get(name)),
            );
        return this.structure(name);
    }

    structure(name) {
        switch (name) {
            case "frac":
            case "dfrac":
            case "tfrac":
            case "cfrac":
                return m("mfrac", {}, this.group(), this.group());
            case "binom":
            case "dbinom":
            case "tbinom":
                return m(
                    "mrow",
                    {},
                    m("mo", {}, "("),
                    m("mfrac", {linethickness: "0"}, this.group(), this.group()),
                    m("mo", {}, ")"),
                );
            case "sqrt":
                return this.root();
            case "left":
                return this.fenced();
            case "begin":
                return this.environment();
            case "text":
            case "textrm":
            case "textnormal":
            case "textup":
            case "textsf":
            case "textsc":
            case "mbox":
            case "hbox":
            case "intertext":
                return this.text("");
            case "textbf":
                return this.text("bold");
            case "textit":
            case "emph":
                return this.text("italic");
            case "texttt":
                return this.text("mono");
            case "mathrm":
            case "mathit":
            case "mathnormal":
            case "mathop":
            case "mathbin":
            case "mathrel":
            case "mathord":
            case "operatorname":
                return this.upright(name);
            case "color":
            case "label":
            case "cline":
            case "require":
            case "hspace":
            case "vspace":
            case "hskip":
            case "kern":
            case "mspace":
                return this.aside(name);
            case "textcolor":
            case "colorbox":
            case "href":
            case "enclose":
                this.optional();
                this.words();
                return this.group();
            case "raisebox":
                this.words();
                return this.text("");
            case "rule":
                this.words();
                this.words();
                return m("mrow", {});
            case "fbox":
                return m("mrow", {class: "boxed"}, this.text(""));
            case "cancelto": {
                const value = this.group();
                return m("msup", {}, m("mrow", {class: "cancel"}, this.group()), value);
            }
            case "ce":
            case "cee":
                return this.instead(chemistry(this.words()));
            case "si":
            case "unit":
                return this.instead(unit(this.words()));
            case "SI":
                return m("mrow", {}, this.instead(this.words()), m("mspace", {width: ".167em"}), this.instead(unit(this.words())));
            case "num":
                return this.instead(this.words());
            case "qty":
                if (this.peek()?.text !== "{") return m("mrow", {}, this.round());
                return m("mrow", {}, this.instead(this.words()), m("mspace", {width: ".167em"}), this.instead(unit(this.words())));
            case "bra":
            case "ket":
            case "braket":
            case "abs":
            case "norm":
            case "ev":
            case "expval":
            case "pod":
                return this.between(name);
            case "dd":
                return m("mrow", {}, m("mi", {mathvariant: "normal"}, "d"), this.peek()?.text === "{" ? this.group() : []);
            case "dv":
            case "pdv":
            case "odv":
                return this.derivative(name === "pdv" ? "∂" : "d");
            case "genfrac":
                return this.anyFraction();
            case "prescript": {
                const [above, below] = [this.group(), this.group()];
                return m("mmultiscripts", {}, this.group(), m("mprescripts"), below, above);
            }
            case "middle": // outside of \\left and \\right
                return this.fence()[0] ?? m("mrow", {});
            case "overgroup":
                return m("mover", {}, this.group(), m("mo", {stretchy: "true"}, "⏠"));
            case "overbracket":
                return m("mover", {}, this.group(), m("mo", {stretchy: "true"}, "⎴"));
            case "underbracket":
                return m("munder", {}, this.group(), m("mo", {stretchy: "true"}, "⎵"));
            case "tag":
                return m("mtext", {class: "tag"}, `\u2003(${this.words()})`);
            case "eqref":
            case "ref":
                return m("mtext", {}, name === "ref" ? this.words() : `(${this.words()})`);
            case "phantom":
            case "hphantom":
            case "vphantom":
                return m("mphantom", {}, this.group());
            case "smash":
            case "mathstrut":
            case "strut":
            case "nonumber":
            case "notag":
            case "hline":
            case "hdashline":
            case "hfill":
            case "tiny":
            case "small":
            case "normalsize":
            case "large":
            case "Large":
            case "LARGE":
            case "huge":
            case "Huge":
            case "normalfont":
            case "allowbreak":
            case "scriptstyle":
            case "scriptscriptstyle":
            case "rm":
            case "bf":
            case "it":
            case "limits":
            case "nolimits":
            case "centering":
            case "noindent":
                return m("mrow", {});
            case "cancel":
            case "bcancel":
            case "xcancel":
            case "sout":
                return m("mrow", {class: "cancel"}, this.group());
            case "substack":
                return this.substack();
            case "xrightarrow":
                return this.arrow("→");
            case "xleftarrow":
                return this.arrow("←");
            case "xRightarrow":
                return this.arrow("⇒");
            case "xleftrightarrow":
                return this.arrow("↔");
            case "xrightleftharpoons":
                return this.arrow("⇌");
            case "xmapsto":
                return this.arrow("↦");
            case "underline":
                return m("munder", {}, this.group(), m("mo", {stretchy: "true"}, "_"));
            case "underbrace":
                return m("munder", {}, this.group(), m("mo", {stretchy: "true"}, "⏟"));
            case "overbrace":
                return m("mover", {}, this.group(), m("mo", {stretchy: "true"}, "⏞"));
            case "boxed":
                return m("mrow", {class: "boxed"}, this.group());
            case "overset":
            case "stackrel":
                return this.stacked("mover");
            case "underset":
                return this.stacked("munder");
            case "pmod":
                return m(
                    "mrow",
                    {},
                    m("mo", {}, "("),
                    m("mi", {}, "mod"),
                    m("mspace", {width: ".3em"}),
                    this.group(),
                    m("mo", {}, ")"),
                );
            case "displaystyle":
            case "textstyle":
                return m("mrow", {});
            case "not":
                return m("mo", {}, `${this.atom().textContent}\u0338`);
            case "{":
            case "}":
            case "%":
            case "&":
            case "#":
            case "$":
            case "_":
                return m("mo", {stretchy: "false"}, name);
            case "|":
                return m("mo", {stretchy: "false"}, "‖");
        }
        if (BIG[name.replace(/[lrm]$/, "")]) return this.sized(BIG[name.replace(/[lrm]$/, "")]);
        if (styled(name, "") !== null) return this.styled(name);
        return m("mtext", {class: "tex"}, `\\${name}`); // this command alone is shown as its source
    }

    /** Words within a formula, whose blanks count; formulas within them are set, too. */
    text(style) {
        const parts = (this.peek()?.text === "{" ? this.words() : (this.next()?.text ?? "")).split("$");
        const nodes = parts.map((part, i) =>
            i % 2 === 1
                ? m("mrow", {}, new Parser(part, false).row([]))
                : m("mtext", style ? {class: style} : {}, plain(part).replace(/^ | $/g, "\u00a0")),
        );
        return nodes.length === 1 ? nodes[0] : m("mrow", {}, nodes);
    }

    /** Letters that stand upright, or whatever else is there. */
    upright(name) {
        const from = this.at;
        const words = this.peek()?.text === "{" ? this.words() : null;
        if (words !== null && /^[\w\s.,*-]*$/.test(words)) {
            const plain = words.trim().replaceAll(/\s+/g, "\u00a0");
            return m("mi", name === "mathit" || name === "mathnormal" ? {} : {mathvariant: "normal"}, plain);
        }
        this.at = from;
        return this.group();
    }

    styled(name) {
        const from = this.at;
        const words = this.peek()?.text === "{" ? this.words() : null;
        if (words !== null && !/[\\{}^_]/.test(words)) return m("mi", {}, styled(name, words.trim()));
        this.at = from;
        const node = this.group();
        const all = [node, ...node.querySelectorAll("*")];
        for (const each of all) if (each.localName === "mi") each.textContent = styled(name, each.textContent);
        return node;
    }

    /** What has an argument that is not shown. */
    aside(name) {
        const words = this.peek()?.text === "{" ? this.words() : "";
        const width = /^\s*(-?[\d.]+)\s*(em|ex|mu|pt|cm|mm)/.exec(words);
        const em = {em: 1, ex: 0.45, mu: 1 / 18, pt: 0.1, cm: 2.8, mm: 0.28};
        if (!/space|skip|kern/.test(name) || !width) return m("mrow", {});
        return m("mspace", {width: `${Math.min(Math.max(width[1] * em[width[2]], -2), 10).toFixed(3)}em`});
    }

    substack() {
        if (!this.take("{")) throw new Beyond("braces are missing");
        const lines = [];
        do lines.push(this.row(["\\\\", "}"]));
        while (this.peek()?.name === "\\" && this.next());
        if (!this.take("}")) throw new Beyond("no closing brace");
        return m("mtable", {}, lines.map((nodes) => m("mtr", {}, m("mtd", {}, nodes))));
    }

    /** An arrow with what stands on it, and below it. */
    arrow(sign) {
        const below = this.take("[") ? m("mrow", {}, this.row(["]"])) : null;
        if (below && !this.take("]")) throw new Beyond("no closing bracket");
        const arrow = m("mo", {stretchy: "true", minsize: "2em"}, sign);
        return m(below ? "munderover" : "mover", {}, [arrow, below, this.group()].filter(Boolean));
    }

    sized(em) {
        const node = this.fence();
        for (const each of node) each.setAttribute("minsize", `${em}em`);
        for (const each of node) each.setAttribute("maxsize", `${em}em`);
        return node[0] ?? m("mrow", {});
    }

    /** One argument between signs of its own. */
    between(name) {
        const [left, right] = {
            bra: "⟨|",
            ket: "|⟩",
            braket: "⟨⟩",
            abs: "||",
            norm: "‖‖",
            ev: "⟨⟩",
            expval: "⟨⟩",
            pod: "()",
        }[name];
        this.take("*"); // of a starred one, whose brackets grow as these do anyway
        const bracket = (text) => m("mo", {stretchy: "true", symmetric: "true"}, text);
        return m("mrow", {}, bracket(left), this.group(), bracket(right));
    }

    /** "(...)" whose brackets grow. */
    round() {
        if (!this.take("(")) return [this.group()];
        const inside = this.row([")"]);
        if (!this.take(")")) throw new Beyond("no closing bracket");
        const bracket = (text) => m("mo", {stretchy: "true", symmetric: "true"}, text);
        return [bracket("("), ...inside, bracket(")")];
    }

    derivative(sign) {
        const order = this.optional();
        const d = () => {
            const node = m("mi", {mathvariant: "normal"}, sign);
            return order ? m("msup", {}, node, this.instead(order)) : node;
        };
        const of = this.group();
        if (this.peek()?.text !== "{") return m("mfrac", {}, d(), m("mrow", {}, m("mi", {mathvariant: "normal"}, sign), of));
        const by = this.group();
        const below = order ? m("msup", {}, by, this.instead(order)) : by;
        return m("mfrac", {}, m("mrow", {}, d(), of), m("mrow", {}, m("mi", {mathvariant: "normal"}, sign), below));
    }

    /** \\genfrac: brackets, thickness of the line, style, and the two parts. */
    anyFraction() {
        const [left, right, thickness] = [this.words(), this.words(), this.words()];
        this.words();
        const line = /^\s*0/.test(thickness) ? {linethickness: "0"} : {};
        const bracket = (text) => (text ? [m("mo", {}, text)] : []);
        return m("mrow", {}, bracket(left), m("mfrac", line, this.group(), this.group()), bracket(right));
    }

    root() {
        if (!this.take("[")) return m("msqrt", {}, this.group());
        const degree = m("mrow", {}, this.row(["]"]));
        if (!this.take("]")) throw new Beyond("no closing bracket");
        return m("mroot", {}, this.group(), degree);
    }

    stacked(tag) {
        const small = this.group();
        return m(tag, {}, this.group(), small);
    }

    fence() {
        const token = this.next();
        const text =
            token?.text ??
            (token?.name === "|" ? "‖" : "{}".includes(token?.name ?? "-") ? token.name : FENCES.get(token?.name));
        if (!text) throw new Beyond("no bracket");
        return text === "." ? [] : [m("mo", {stretchy: "true", symmetric: "true"}, text)];
    }

    fenced() {
        const left = this.fence();
        const inside = [];
        for (;;) {
            inside.push(...this.row(["\\right", "\\middle"]));
            const end = this.next();
            if (!end) throw new Beyond("\\left without \\right");
            inside.push(...this.fence());
            if (end.name === "right") return m("mrow", {}, left, inside);
        }
    }

    environment() {
        const name = this.words().replace("*", "");
        if (/matrix$/.test(name)) this.optional(); // how its columns stand
        const kinds = {
            matrix: ["", ""],
            pmatrix: ["(", ")"],
            bmatrix: ["[", "]"],
            Bmatrix: ["{", "}"],
            vmatrix: ["|", "|"],
            Vmatrix: ["‖", "‖"],
            cases: ["{", ""],
            aligned: ["", ""],
            align: ["", ""],
            gathered: ["", ""],
            gather: ["", ""],
            split: ["", ""],
            array: ["", ""],
            equation: ["", ""],
            smallmatrix: ["", ""],
            multline: ["", ""],
            eqnarray: ["", ""],
            alignedat: ["", ""],
            alignat: ["", ""],
            flalign: ["", ""],
            subarray: ["", ""],
            tabular: ["", ""],
            dcases: ["{", ""],
            rcases: ["", "}"],
        };
        const fences = kinds[name];
        if (!fences) throw new Beyond(name);
        if (["array", "tabular", "alignedat", "alignat", "subarray"].includes(name)) this.words();
        const rows = [[]];
        for (;;) {
            rows.at(-1).push(m("mtd", {}, this.row(["&", "\\\\", "\\end"])));
            const end = this.next();
            if (end?.name === "\\") {
                if (this.peek()?.text === "[") while (this.peek() && !this.take("]")) this.next(); // of a space below
                rows.push([]);
            } else if (end?.name === "end") break;
            else if (!end) throw new Beyond("no \\end");
        }
        this.words();
        if (rows.at(-1).length === 1 && !rows.at(-1)[0].hasChildNodes()) rows.pop();
        const side = /^(align|split|eqn|fl)/.test(name) ? "sides" : /cases$/.test(name) ? "left" : null;
        const grid = m(
            "mtable",
            side ? {class: side} : {},
            rows.map((cells) => m("mtr", {}, cells)),
        );
        const bracket = (text) => (text ? [m("mo", {stretchy: "true", symmetric: "true"}, text)] : []);
        return m("mrow", {}, bracket(fences[0]), grid, bracket(fences[1]));
    }
}

/** A formula as an element: MathML, or its source where that cannot be. whole: the source with its marks. */
export function formula(source, display, whole) {
    try {
        if (source.length > MOST) throw new Beyond("too long");
        const parser = new Parser(source, display);
        const nodes = parser.row([]);
        return m(
            "math",
            display ? {display: "block"} : {},
            m("semantics", {}, m("mrow", {}, nodes), m("annotation", {encoding: "application/x-tex"}, source)),
        );
    } catch (error) {
        if (!(error instanceof Beyond)) throw error;
        return h("code", {class: "tex"}, whole);
    }
}
