// Markdown and formulas, as nodes.

import assert from "node:assert/strict";
import {main, settings, test, until, visit} from "./common.mjs";

const {replay_url: REPLAY} = settings;

// A text and its nodes, written as tag(children); text between elements stands in quotes.
const TEXTS = [
    [
        "a *b* **c** ***d*** _e_ __f__",
        'p("a " em("b") " " strong("c") " " em(strong("d")) " " em("e") " " strong("f"))',
    ],
    ["snake_case_name and 2*3*4 and * lone", 'p("snake_case_name and 2" em("3") "4 and * lone")'],
    ["**bold *both* bold**", 'p(strong("bold " em("both") " bold"))'],
    ["*a **b*", 'p("*a *" em("b"))'],
    ["~~gone~~ ~kept~", 'p(del("gone") " ~kept~")'],
    ["`a *b*` ``c`d`` `open", 'p(code("a *b*") " " code("c`d") " `open")'],
    ["\\*not\\* \\`code\\`", 'p("*not* `code`")'],
    ["one\ntwo", 'p("one" br() "two")'],
    ["one\n\ntwo", 'p("one") p("two")'],
    ["# One\n## Two\n#### Four\n####### seven", 'h2("One") h3("Two") h4("Four") p("####### seven")'],
    ["### Three first", 'h2("Three first")'],
    ["[a *b*](https://x.example/)", 'p(a("a " em("b")))'],
    ["[a](http://x.example/b_(c)) d", 'p(a("a") " d")'],
    [
        "[a](ftp://x.example/) [b](//x.example/) [c](JaVaScRiPt:x)",
        'p("a (ftp://x.example/) b (//x.example/) c (JaVaScRiPt:x)")',
    ],
    ["![cat](https://x.example/c.png)", 'p(a("picture: cat"))'],
    [
        "see https://x.example/a_b, or (https://y.example/)",
        'p("see " a("https://x.example/a_b") ", or (" a("https://y.example/") ")")',
    ],
    ["<https://x.example/> <b>no</b> a<br>b", 'p(a("https://x.example/") " <b>no</b> a" br() "b")'],
    ["&lt;b&gt; &amp; &copy; &#65; &#0;", 'p("<b> & &copy; A &#0;")'],
    ["- a\n- b\n  - c\n\n    more\n- d", 'ul(li("a") li("b" ul(li(p("c") p("more")))) li("d"))'],
    ["3. a\n4. b", 'ol(li("a") li("b"))'],
    ["- [ ] a\n- [x] b", 'ul(li(input() "a") li(input() "b"))'],
    ["in\n1986. Then", 'p("in" br() "1986. Then")'],
    ["> a\nb\n\nc", 'blockquote(p("a" br() "b")) p("c")'],
    ["---\n***", "hr() hr()"],
    [
        "| a | b |\n|---|--:|\n| 1 | 2\\|3 |\n| 4 |",
        'div(table(thead(tr(th("a") th("b"))) tbody(tr(td("1") td("2|3")) tr(td("4") td()))))',
    ],
    ["a | b\nc", 'p("a | b" br() "c")'],
    ["```\na\n```\nb", 'figure(figcaption(span("code") button(svg(path()) "Copy")) pre(code("a"))) p("b")'],
    ["~~~~x\n```\n~~~~", 'figure(figcaption(span("x") button(svg(path()) "Copy")) pre(code("```")))'],
    [
        "```js\nlet a = 1 // b",
        'figure(figcaption(span("js") button(svg(path()) "Copy")) pre(code(span("let") " a = " span("1") " " span("// b"))))',
    ],
    ["$5 and $6", 'p("$5 and $6")'],
    ["\\$x$", 'p("$x$")'],
];

// A formula and its MathML, without what is around every formula.
const FORMULAS = [
    ["x^2", 'msup(mi("x") mn("2"))'],
    ["a_i^{n+1}", 'msubsup(mi("a") mi("i") mrow(mi("n") mo("+") mn("1")))'],
    ["\\frac{1}{2}", 'mfrac(mn("1") mn("2"))'],
    ["\\frac12", 'mfrac(mn("1") mn("2"))'],
    ["\\sqrt[3]{x}", 'mroot(mi("x") mrow(mn("3")))'],
    ["-1 \\le \\alpha", 'mo("−") mn("1") mo("≤") mi("α")'],
    ["\\sum_{i=1}^n i", 'munderover(mo("∑") mrow(mi("i") mo("=") mn("1")) mi("n")) mi("i")'],
    ["\\left( \\frac{a}{b} \\right)", 'mrow(mo("(") mfrac(mi("a") mi("b")) mo(")"))'],
    ["\\mathbb{R} \\mathbf{x}", 'mi("ℝ") mi("𝐱")'],
    ["\\text{if } x", 'mtext("if ") mi("x")'],
    ["f'(x)", 'msup(mi("f") mo("′")) mo("(") mi("x") mo(")")'],
    [
        "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}",
        'mrow(mo("(") mtable(mtr(mtd(mi("a")) mtd(mi("b"))) mtr(mtd(mi("c")) mtd(mi("d")))) mo(")"))',
    ],
    ["\\lim_{x \\to 0} \\sin x", 'munder(mi("lim") mrow(mi("x") mo("→") mn("0"))) mi("sin") mi("x")'],
    ["\\hat{x} \\vec{v}", 'mover(mi("x") mo("^")) mover(mi("v") mo("→"))'],
    ["\\unknown", null],
    ["\\frac{1}", null],
    ["{x", null],
    ["\\left( x", null],
    ["\\begin{cases} x", null],
];

/* In the page: the nodes of texts, and the insides of formulas. */
async function rendered([texts, formulas]) {
    const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
    const {markdown} = await import(`${folder}text/markdown.js`);
    const {formula} = await import(`${folder}text/math.js`);
    const write = (node) =>
        node.nodeType === 3
            ? JSON.stringify(node.data)
            : `${node.localName}(${[...node.childNodes].map(write).join(" ")})`;
    const all = (node) => {
        node.normalize();
        return [...node.childNodes].map(write).join(" ");
    };
    return [
        texts.map((text) => all(markdown(text))),
        formulas.map((text) => {
            const node = formula(text, true, text);
            return node.localName === "math" ? all(node.firstChild.firstChild) : null;
        }),
    ];
}

test("Markdown and formulas become the nodes that are meant", () =>
    visit(REPLAY, async (tab) => {
        const got = await tab.evaluate(rendered, [TEXTS.map(([text]) => text), FORMULAS.map(([text]) => text)]);
        for (const [i, [text, wanted]] of TEXTS.entries()) assert.equal(got[0][i], wanted, text);
        for (const [i, [text, wanted]] of FORMULAS.entries()) assert.equal(got[1][i], wanted, text);
    }));

test("a text that grows keeps the nodes that have not changed", () =>
    visit(REPLAY, async (tab) => {
        const kept = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {MarkdownView, markdown} = await import(`${folder}text/markdown.js`);
            const text =
                "# A\n\nfirst *paragraph*\n\n- a\n- b\n\n```js\nlet a = 1;\n```\n\n| a |\n|---|\n| 1 |\n\nlast $x^2$ words";
            const element = document.createElement("div");
            const view = new MarkdownView(element);
            let first = null;
            for (let length = 1; length <= text.length; length++) {
                view.show(text.slice(0, length));
                if (length === 30) first = element.firstChild;
                if (element.textContent !== markdown(text.slice(0, length)).textContent) return `differs at ${length}`;
            }
            return element.firstChild === first && element.isEqualNode(element) && view.shown.length === 6;
        });
        assert.equal(kept, true);
    }));

test("code is copied", () =>
    visit(REPLAY, async (tab, visitor) => {
        await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
        await tab.fill("#question", "replay:rich");
        await tab.press("#question", "Enter");
        await until(tab, () => document.querySelector(".stats"));
        await tab.click(".code button");
        await until(tab, () => document.querySelector("#announcer").textContent === "Copied");
        assert.match(
            await tab.evaluate(() => navigator.clipboard.readText()),
            /^def sing\(notes\):  # every voice\n {4}return/,
        );
    }));

await main("text");
