// Markdown and formulas, as nodes.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {accessible, ask, main, settings, settled, streamed, test, until, visit} from "./common.mjs";

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
    ["&lt;b&gt; &amp; &copy; &eacute;&Uuml; &alpha; &#65; &#0; &nothing;", 'p("<b> & © éÜ α A &#0; &nothing;")'],
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
    ["```\na\n```\nb", 'figure(figcaption(span("code") button(svg(path()) "Copy")) pre(code(span("a")))) p("b")'],
    ["~~~~x\n```\n~~~~", 'figure(figcaption(span("x") button(svg(path()) "Copy")) pre(code(span("```"))))'],
    [
        "```js\nlet a = 1 // b",
        'figure(figcaption(span("js") button(svg(path()) "Copy")) pre(code(span(span("let") " a = " span("1") " " span("// b")))))',
    ],
    [
        "```js\n/* a\nb */ 1\n```",
        'figure(figcaption(span("js") button(svg(path()) "Copy")) pre(code(span(span("/* a") "\\n" span("b */") " " span("1")))))',
    ],
    ["a\n\n    b\n\n      c\nd", 'p("a") figure(figcaption(span("code") button(svg(path()) "Copy")) pre(code(span("b\\n\\n  c")))) p("d")'],
    ["a[^1] b\n\n[^1]: see *c*\n[^n]: d", 'p("a" sup("1") " b") p(sup("1") " see " em("c")) p(sup("n") " d")'],
    ["\\begin{align}\na &= b\n\\end{align} c", 'div(math(semantics(mrow(mrow(mtable(mtr(mtd(mi("a")) mtd(mo("=") mi("b")))))) annotation("\\\\begin{align}\\na &= b\\n\\\\end{align}"))) p("c"))'],
    ["$5 and $6", 'p("$5 and $6")'],
    ["\\$x$", 'p("$x$")'],
];

// A text in Hebrew or Arabic, and the parts of it that are to run from right to left.
const LEFTWARD = [
    ["- שלום\n- עולם", "ul", "li"],
    ["1. مرحبا\n2. بالعالم", "ol", "li"],
    ["| שם | ערך |\n|---|---|\n| א | ב |", "table", "th", "td"],
    ["> שלום", "blockquote", "p"],
    ["# שלום", "h2"],
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
    ["\\text{if } x", 'mtext("if\u00a0") mi("x")'],
    ["f'(x)", 'msup(mi("f") mo("′")) mo("(") mi("x") mo(")")'],
    [
        "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}",
        'mrow(mo("(") mtable(mtr(mtd(mi("a")) mtd(mi("b"))) mtr(mtd(mi("c")) mtd(mi("d")))) mo(")"))',
    ],
    ["\\lim_{x \\to 0} \\sin x", 'munder(mi("lim") mrow(mi("x") mo("→") mn("0"))) mi("sin") mi("x")'],
    ["\\hat{x} \\vec{v}", 'mover(mi("x") mo("^")) mover(mi("v") mo("→"))'],
    ["\\unknown{x} + 1", 'mtext("\\\\unknown") mi("x") mo("+") mn("1")'],
    ["\\text{ if } x", 'mtext("\u00a0if\u00a0") mi("x")'],
    ["\\mathbf{\\Sigma}_x", 'msub(mi("Σ") mi("x"))'],
    ["\\xrightarrow{f}", 'mover(mo("→") mi("f"))'],
    ["\\bigl( x", 'mo("(") mi("x")'],
    ["{n \\choose k}", 'mrow(mo("(") mfrac(mrow(mi("n")) mrow(mi("k"))) mo(")"))'],
    ["\\ket{0}", 'mrow(mo("|") mn("0") mo("⟩"))'],
    ["\\dv[2]{f}{x}", 'mfrac(mrow(msup(mi("d") mrow(mn("2"))) mi("f")) mrow(mi("d") msup(mi("x") mrow(mn("2")))))'],
    ["\\ce{2H2O}", 'mrow(mn("2") mspace() msub(mi("H") mn("2")) mi("O"))'],
    ["\\ce{SO4^2-}", 'mrow(msubsup(mi("SO") mn("4") mi("2-")))'],
    ["\\ce{A -> B}", 'mrow(mi("A") mover(mo("→") mspace()) mi("B"))'],
    ["\\si{\\kilo\\gram}", 'mrow(mtext("kg"))'],
    ["\\newcommand{\\R}{\\mathbb{R}} \\R", 'mi("ℝ")'],
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

test("what closes no code is not looked for again and again", () =>
    visit(REPLAY, async (tab) => {
        const looked = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {markdown} = await import(`${folder}text/markdown.js`);
            const {indexOf} = String.prototype;
            let count = 0;
            String.prototype.indexOf = function (...what) {
                count++;
                return indexOf.apply(this, what);
            };
            try {
                markdown("\\```".repeat(1000));
            } finally {
                String.prototype.indexOf = indexOf;
            }
            return count;
        });
        assert.ok(looked < 20000, `${looked} searches in a text of 4000 characters`);
    }));

test("lists, tables and quotes run as their letters do", () =>
    visit(REPLAY, async (tab) => {
        for (const [text, ...tags] of LEFTWARD) {
            const found = await tab.evaluate(async (given) => {
                const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
                const {markdown, MarkdownView} = await import(`${folder}text/markdown.js`);
                const element = markdown(given);
                const grown = document.createElement("div");
                const view = new MarkdownView(grown);
                for (let length = 1; length <= given.length; length++) view.show(given.slice(0, length));
                document.querySelector("#messages").replaceChildren(element);
                const marker = element.querySelector("ul, ol");
                return {
                    same: grown.innerHTML === element.innerHTML,
                    left: [...element.querySelectorAll("*")]
                        .filter((node) => getComputedStyle(node).direction !== "rtl")
                        .map((node) => node.localName),
                    align: marker && getComputedStyle(marker).paddingRight,
                };
            }, text);
            assert.ok(found.same, `${text} is the same when it has grown`);
            for (const tag of tags) assert.ok(!found.left.includes(tag), `${tag} of ${text}`);
            if (found.align) assert.ok(parseFloat(found.align) > 10, "numbers and dots stand at the right");
        }
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
            return element.firstChild === first && element.childElementCount === 6;
        });
        assert.equal(kept, true);
    }));

test("a block that grows costs what is new", () =>
    visit(REPLAY, async (tab) => {
        const found = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {MarkdownView, markdown} = await import(`${folder}text/markdown.js`);
            const many = (line) => Array.from({length: 200}, (_, i) => line.replaceAll("#", String(i))).join("");
            const texts = {
                code: "```js\n" + many("let a# = 'text #'; // and a word #\n") + "```\nend",
                "code over lines": "```js\n/*\n" + many("a comment, line #\n") + "*/\n```",
                table: "| a | b |\n|---|---|\n" + many("| *cell* # | `code` # |\n") + "\nend",
                list: many("- item *#*\n"),
                "list in a list": "1. one\n" + many("   - inner # of it\n"),
                "table in a quote": "> | a | b |\n> |---|---|\n" + many("> | cell # | x |\n"),
                "one paragraph": many("Words, *some* of them #, with `code` in between, "),
                "one paragraph with an open mark": "It *costs $5, " + many("words and more # of them, "),
                "one item": "- " + many("  **Words** # and more of them;\n"),
                "one paragraph in a quote": many("> Words and more of them #,\n"),
                paragraphs: many("A paragraph with *words* #.\n\n"),
            };
            const out = [];
            for (const [name, text] of Object.entries(texts)) {
                const element = document.createElement("div");
                const view = new MarkdownView(element);
                const observer = new MutationObserver(() => {});
                observer.observe(element, {childList: true, subtree: true});
                const size = (node) => 1 + [...node.childNodes].reduce((sum, child) => sum + size(child), 0);
                let most = 0;
                for (let length = 16; length < text.length + 16; length += 16) {
                    view.show(text.slice(0, length));
                    const made = observer.takeRecords().flatMap((record) => [...record.addedNodes]);
                    most = Math.max(most, made.reduce((sum, node) => sum + size(node), 0));
                }
                const whole = document.createElement("div");
                new MarkdownView(whole).show(text);
                out.push([name, most, whole.isEqualNode(element), whole.textContent === markdown(text).textContent]);
            }
            return out;
        });
        for (const [name, most, same] of found) {
            assert.ok(same, `${name} is not what it is at once`);
            assert.ok(most < 60, `${name}: ${most} nodes are made in a frame`);
        }
    }));

test("while a table of 50 KB is answered a frame makes what is new, at its beginning and at its end", () =>
    visit(REPLAY, async (tab) => {
        await tab.evaluate(streamed);
        await ask(tab, "a table");
        await until(tab, () => window.say);
        const found = await tab.evaluate(async () => {
            const row = (i) => `| *cell* ${i} | \`code\` ${i} | some words |\n`;
            let text = "| a | b | c |\n|---|---|---|\n";
            for (let i = 0; text.length < 50000; i++) text += row(i);
            const list = document.querySelector("#messages");
            const size = (node) => 1 + [...node.childNodes].reduce((sum, child) => sum + size(child), 0);
            let made = 0;
            const observer = new MutationObserver((records) => {
                for (const {addedNodes} of records) for (const node of addedNodes) made += size(node);
            });
            const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
            const written = () => list.querySelector(".said")?.textContent.length ?? 0;
            let at = 0;
            const say = async (length) => {
                const before = written();
                window.say("response.output_text.delta", {delta: text.slice(at, at + length)});
                at += length;
                do await frame();
                while (written() === before);
            };
            window.say("response.created", {response: {id: "resp_table", model: "m"}});
            window.say("response.output_item.added", {item: {type: "message"}});
            await say(200);
            observer.observe(list, {childList: true, subtree: true, characterData: true});
            const most = async (steps) => {
                let found = 0;
                for (let i = 0; i < steps; i++) {
                    made = 0;
                    await say(64); // as many as four frames have at 200 tokens/s
                    found = Math.max(found, made);
                }
                return found;
            };
            const early = await most(20);
            await say(text.length - at - 20 * 64);
            const late = await most(20);
            return {early, late, rows: list.querySelectorAll("tbody tr").length, all: size(list), length: at};
        });
        assert.ok(found.length >= 50000 && found.rows > 1000 && found.all > 10000, JSON.stringify(found));
        assert.ok(found.early > 0 && found.early < 100 && found.late <= found.early + 20, JSON.stringify(found));
        await tab.evaluate(() => {
            const response = {id: "resp_table", status: "completed", usage: {input_tokens: 1, output_tokens: 1}};
            window.say("response.completed", {response});
        });
        await settled(tab, 2);
    }));

test("a long table has columns, and is laid out where it is seen", () =>
    visit(REPLAY, async (tab) => {
        const found = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {MarkdownView} = await import(`${folder}text/markdown.js`);
            const head = "| name | what it is |\n|---|---|\n";
            const rows = (n) => Array.from({length: n}, (_, i) => `| row ${i} | ${"some words ".repeat(1 + (i % 3))}|\n`).join("");
            const element = document.createElement("div");
            element.className = "prose";
            document.querySelector("#messages").append(element);
            const view = new MarkdownView(element);
            const out = [];
            for (const n of [100, 101, 350, 101, 100]) {
                view.show(head + rows(n));
                const fresh = document.createElement("div");
                fresh.className = "prose";
                new MarkdownView(fresh).show(head + rows(n));
                const table = element.querySelector("table");
                out.push([n, table.tBodies.length, table.className, fresh.isEqualNode(element), table.getAttribute("role")]);
            }
            view.show(head + rows(350));
            element.querySelector("tbody").scrollIntoView();
            await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
            const table = element.querySelector("table");
            const left = (cell) => Math.round(cell.getBoundingClientRect().left);
            const edges = [...table.rows].slice(0, 20).map((row) => [...row.cells].map(left).join(" "));
            const skipped = !table.tBodies[3].rows[0].cells[0].checkVisibility({contentVisibilityAuto: true});
            return {out, edges: new Set(edges).size, skipped};
        });
        assert.deepEqual(found.out, [
            [100, 1, "", true, null],
            [101, 2, "long", true, "table"],
            [350, 4, "long", true, "table"],
            [101, 2, "long", true, "table"],
            [100, 1, "", true, null],
        ]);
        assert.equal(found.edges, 1, "the columns of all rows begin at the same places");
        assert.ok(found.skipped, "what is far away is not laid out");
        await accessible(tab, "a long table");
    }));

test("everyday formulas are set whole", () =>
    visit(REPLAY, async (tab) => {
        const list = path.join(settings.root, "tests", "web", "formulas.txt");
        const sources = fs.readFileSync(list, "utf8").trim().split("\n");
        const left = await tab.evaluate(async (all) => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {formula} = await import(`${folder}text/math.js`);
            return all.filter((text) => {
                const node = formula(text, true, text);
                return node.localName !== "math" || node.querySelector(".tex");
            });
        }, sources);
        assert.ok(sources.length > 450);
        assert.deepEqual(left, []);
    }));

test("formulas have fonts whose brackets stretch", () =>
    visit(REPLAY, async (tab) => {
        const found = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {formula} = await import(`${folder}text/math.js`);
            const text = "\\left( \\frac{a}{b} \\right) + (c)";
            const node = formula(text, true, text);
            document.querySelector("#messages").replaceChildren(node);
            const marks = [...node.querySelectorAll("mo")].filter((each) => each.textContent === "(");
            return [getComputedStyle(node).fontFamily, marks.map((each) => each.getAttribute("stretchy"))];
        });
        const fonts = found[0].split(", ").map((name) => name.replaceAll('"', ""));
        for (const font of ["Latin Modern Math", "STIX Two Math", "Cambria Math"]) assert.ok(fonts.includes(font), font);
        assert.equal(fonts.at(-1), "math");
        assert.deepEqual(found[1], ["true", "false"]); // only those of left and right
    }));

test("a conversation of 500 messages is made where it is seen", () =>
    visit(
        REPLAY,
        async (tab) => {
            const messages = Array.from({length: 500}, (_, i) => ({
                id: `m${i}`,
                parent: i > 0 ? `m${i - 1}` : null,
                created: i,
                ...(i % 2
                    ? {role: "assistant", status: "done", items: [{type: "text", text: "A *word*.\n\n- a\n- b\n".repeat(5)}]}
                    : {role: "user", text: `question ${i}`}),
            }));
            const conversation = {id: "c", title: "Long", created: 1, updated: 1, leaf: "m499", settings: {}, messages};
            const file = {format: "motet.chat", version: 1, conversations: [conversation]};
            await tab.setInputFiles("#import-file", {
                name: "a.json",
                mimeType: "application/json",
                buffer: Buffer.from(JSON.stringify(file)),
            });
            await tab.click("#conversations a");
            await until(tab, () => document.querySelectorAll(".message").length === 500);
            const nodes = () => tab.evaluate(() => document.querySelectorAll("#messages *").length);
            assert.ok((await nodes()) < 2500, `${await nodes()} nodes are made on opening`);
            await tab.evaluate(() => document.querySelector("#transcript").scrollTo(0, 0));
            await until(tab, () => document.querySelector(".message").textContent.includes("question 0"));
            await tab.evaluate(() => window.idle.splice(0).forEach((work) => work()));
            while (await tab.evaluate(() => window.idle.splice(0).map((work) => work()).length > 0));
            assert.equal(await tab.locator(".later").count(), 0);
        },
        {
            before: (context) =>
                context.addInitScript(() => {
                    window.idle = [];
                    window.requestIdleCallback = (work) => window.idle.push(work);
                }),
        },
    ));

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
