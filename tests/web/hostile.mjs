// What a model writes is never more than text, wherever it is shown.

import assert from "node:assert/strict";
import {main, settings, test, textOf, until, visit} from "./common.mjs";

const {replay_url: REPLAY} = settings;
const TOOL = [{name: "look", parameters: {type: "object", properties: {where: {type: "string"}}}}];

/** Nothing that runs, loads or looks like the page has come into it. */
async function harmless(tab) {
    const found = await tab.evaluate(() => {
        const inside = document.querySelector("#messages");
        const all = [...document.querySelectorAll("body *")];
        return {
            ran: window.pwned ?? null,
            elements: [
                ...inside.querySelectorAll(
                    "script, img:not(.gallery img), iframe, object, embed, link, style, meta, form:not(.results, .editing), base, frame, video:not(.gallery video), audio",
                ),
            ].map((node) => node.outerHTML),
            handlers: all
                .flatMap((node) => [...node.attributes])
                .filter((each) => /^on/i.test(each.name))
                .map((each) => each.name),
            links: [...document.querySelectorAll("#messages a")].map((node) => [node.protocol, node.rel, node.target]),
            names: [...new Set(all.map((node) => node.namespaceURI))],
        };
    });
    assert.equal(found.ran, null);
    assert.deepEqual(found.elements, []);
    assert.deepEqual(found.handlers, []);
    for (const [protocol, rel, target] of found.links) {
        assert.ok(["http:", "https:", "mailto:"].includes(protocol), protocol);
        assert.ok(rel.includes("noopener") && rel.includes("noreferrer") && target === "_blank");
    }
    return found;
}

function settled(tab, count) {
    return until(
        tab,
        (wanted) => document.querySelectorAll(".message").length === wanted && !document.querySelector(".running"),
        count,
    );
}

async function ask(tab, text) {
    await tab.fill("#question", text);
    await tab.press("#question", "Enter");
}

test("text, reasoning, titles, names and probabilities", () =>
    visit(REPLAY, async (tab) => {
        await tab.click("#probabilities");
        await ask(tab, "replay:hostile <img src=x onerror=window.pwned=40>");
        await settled(tab, 2);
        await tab.click(".reasoning summary");
        const {links} = await harmless(tab);
        assert.ok(links.length >= 3, "what may be a link is one");
        const text = await textOf(tab.locator(".said"));
        for (const shown of [
            "<script>window.pwned = 1</script>",
            "javascript:window.pwned=4",
            "<iframe src=//evil.example>",
            "<script>window.pwned=14</script>",
            "<style>*{display:none}</style> heading",
            "<form action=//evil.example>",
        ])
            assert.ok(text.includes(shown), `${shown} is not shown as text in ${text}`);
        assert.match(await textOf(tab.locator(".reasoning .prose")), /<script>window.pwned=21/);
        assert.equal(await tab.locator("#model option").innerText(), "replay <b>model</b>");
        assert.match(await tab.title(), /<img src=x onerror/);
        await tab.click("[aria-label='Colour tokens by probability']");
        await tab.locator(".token").first().focus();
        for (let i = 0; i < 30; i++) await tab.keyboard.press("ArrowRight");
        await harmless(tab);
        await tab.reload();
        await settled(tab, 2);
        await harmless(tab);
    }));

test("calls of tools, their results, and errors", () =>
    visit(REPLAY, async (tab, visitor) => {
        await tab.click("#show-settings");
        await tab.click("#settings summary >> nth=1");
        await tab.fill("#set-tools", JSON.stringify(TOOL));
        await ask(tab, "replay:attack");
        await settled(tab, 2);
        assert.match(await textOf(tab.locator(".call pre")), /<\/pre><img src=x onerror=window.pwned=30>/);
        await harmless(tab);
        await tab.fill("form.results textarea", "<script>window.pwned=41</script>");
        await tab.click("text=Give the result");
        await settled(tab, 4);
        assert.match(await textOf(tab.locator(".said").last()), /<img src=x onerror=window.pwned=33>/);
        await harmless(tab);
        // an error that quotes what was sent
        visitor.allowed.push(/status of 400/);
        await tab.fill(
            "#set-tools",
            JSON.stringify([{name: "<img src=x onerror=window.pwned=42>", parameters: "<script>"}]),
        );
        await ask(tab, "again");
        await tab.locator(".bad[role=alert]").waitFor();
        await harmless(tab);
    }));

test("what a server writes that is not motet, or has gone wrong", () =>
    visit(REPLAY, async (tab, visitor) => {
        const evil = "<img src=x onerror=window.pwned=50>";
        const events = [
            {type: "response.created", sequence_number: 0, response: {id: "resp_x", model: evil}},
            {
                type: "response.output_item.added",
                sequence_number: 1,
                output_index: 0,
                item: {type: "function_call", call_id: evil, name: evil},
            },
            {type: "response.function_call_arguments.delta", sequence_number: 2, output_index: 0, delta: evil},
            {type: "response.output_item.added", sequence_number: 3, output_index: 1, item: {type: "message"}},
            {
                type: "response.output_text.delta",
                sequence_number: 4,
                output_index: 1,
                delta: evil,
                logprobs: [
                    {
                        token: evil,
                        logprob: -1,
                        top_logprobs: [
                            {token: evil, logprob: -1},
                            {token: "</td><script>window.pwned=51</script>", logprob: -2},
                        ],
                    },
                ],
            },
            {
                type: "response.failed",
                sequence_number: 5,
                response: {status: "failed", error: {message: evil}, usage: {input_tokens: evil, output_tokens: evil}},
            },
        ];
        await visitor.context.route("**/v1/responses**", (route) =>
            route.fulfill({
                contentType: "text/event-stream",
                body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
            }),
        );
        await ask(tab, "hello");
        await settled(tab, 2);
        await tab.click("[aria-label='Colour tokens by probability']");
        await tab.locator(".token").first().focus();
        assert.equal(await textOf(tab.locator(".call h2")), evil);
        assert.equal(await tab.locator(".fault .note").textContent(), evil);
        await harmless(tab);
    }));

test("files that were not exported here", () =>
    visit(REPLAY, async (tab) => {
        const evil = "<img src=x onerror=window.pwned=60>";
        const message = (more) => ({id: "a", parent: null, created: evil, ...more});
        const file = {
            format: "motet.chat",
            version: 1,
            conversations: [
                {
                    id: evil,
                    title: evil,
                    leaf: "b",
                    settings: {model: evil, system: {}},
                    messages: [
                        message({role: "user", text: evil}),
                        {
                            ...message({
                                role: "assistant",
                                items: [
                                    {type: "text", text: evil},
                                    {type: evil, text: evil},
                                    {type: "call", name: evil, arguments: {}},
                                ],
                                status: evil,
                                stats: {tokens: evil},
                            }),
                            id: "b",
                            parent: "a",
                        },
                    ],
                },
            ],
        };
        await tab.setInputFiles("#import-file", {
            name: "a.json",
            mimeType: "application/json",
            buffer: Buffer.from(JSON.stringify(file)),
        });
        await tab.click("#conversations a");
        await settled(tab, 2);
        await harmless(tab);
        file.conversations[0].messages[0].attachments = [
            {kind: "image", name: "a", data: "data:text/html;base64,PHNjcmlwdD4="},
        ];
        await tab.setInputFiles("#import-file", {
            name: "a.json",
            mimeType: "application/json",
            buffer: Buffer.from(JSON.stringify(file)),
        });
        await tab.locator("#notice >> text=neither a picture nor a video").waitFor();
    }));

test("texts made to take for ever do not", () =>
    visit(REPLAY, async (tab, visitor) => {
        const session = await visitor.context.newCDPSession(tab);
        await session.send("Performance.enable", {timeDomain: "threadTicks"});
        // seconds of the processor that the page has had: a machine with other work does not change them
        const spent = async () =>
            (await session.send("Performance.getMetrics")).metrics.find(({name}) => name === "TaskDuration").value;
        const names = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const {markdown} = await import(`${folder}text/markdown.js`);
            const texts = (n) => [
                "*".repeat(n),
                "**a ".repeat(n),
                "a**".repeat(n),
                "_a*b".repeat(n),
                "[".repeat(n),
                "[a](".repeat(n / 4),
                "](".repeat(n),
                "`".repeat(n),
                "` `` ".repeat(n),
                "$a ".repeat(n),
                "$$".repeat(n),
                "\\(".repeat(n),
                "> ".repeat(n),
                "- ".repeat(n),
                `${" ".repeat(n)}a`,
                "#".repeat(n),
                "# ".repeat(n),
                "|".repeat(n),
                "|-".repeat(n),
                "a|b\n-|-\n".repeat(n / 10),
                "<".repeat(n),
                "&".repeat(n),
                "http://".repeat(n),
                "{".repeat(n),
                `$${"{".repeat(n / 11)}$`,
                `$$${"\\left(".repeat(n / 66)}$$`,
                "1. a\n".repeat(n),
                "  "
                    .repeat(50)
                    .concat("- a\n")
                    .repeat(n / 100),
                "\u202e".repeat(n),
                Array.from({length: n / 66}, (_, i) => `${"  ".repeat(i)}- x`).join("\n"),
                "```\n".repeat(n),
                "!".repeat(n) + "[".repeat(n),
                `\`\`\`js\n${"/*".repeat(n)}`,
                `\`\`\`js\n${"'\\".repeat(n)}`,
            ];
            window.texts = [texts(5000), texts(20000)];
            window.show = markdown;
            return texts(10).map((text) => text.slice(0, 12));
        });
        const took = async (size, i) => {
            const before = await spent();
            await tab.evaluate(([which, at]) => void window.show(window.texts[which][at]), [size, i]);
            return (await spent()) - before;
        };
        const best = async (size, i) => Math.min(await took(size, i), await took(size, i), await took(size, i));
        // what must not be is that four times the text takes far more than that
        const slow = [];
        for (const [i, name] of names.entries()) {
            const time = await took(1, i);
            if (time > 1 && (await best(1, i)) > 9 * (await best(0, i))) slow.push(`${name}: ${time} s`);
        }
        assert.deepEqual(slow, []);
    }));

await main("hostile");
