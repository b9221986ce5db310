// Anthropic's own SDK: messages, whole and streamed, with thinking, a call of a tool, and counting.

import { assert, answer, base64, cached, call, load, result, schema, system, task, url } from "./common.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 });
const tools = [{ name: "get_weather", description: "The weather of a city.", input_schema: schema }];
const ask = { model: "claude-any", max_tokens: 1000, system, tools };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } };
const question = { role: "user", content: [image, { type: "text", text: task }] };
const messages = [question];

const stream = client.messages.stream({ ...ask, messages, thinking: { type: "enabled", budget_tokens: 1024 } });
let text = "";
stream.on("text", (delta) => (text += delta));
const first = await stream.finalMessage();
assert.equal(first.stop_reason, "tool_use");
assert.deepEqual(first.content.map((block) => block.type), ["thinking", "text", "tool_use"]);
assert.equal(first.content[1].text, text);
assert.deepEqual(first.content[2].input, call);

messages.push({ role: "assistant", content: first.content });
messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: first.content[2].id, content: result }] });
const second = await client.messages.create({ ...ask, messages });
assert.equal(second.content[0].text, answer);
assert.equal(second.stop_reason, "end_turn");
const prompt = (usage) => usage.input_tokens + usage.cache_read_input_tokens;
cached(prompt(first.usage), prompt(second.usage), second.usage.cache_read_input_tokens);

const counted = await client.messages.countTokens({ model: ask.model, system, tools, messages });
assert.equal(counted.input_tokens, prompt(second.usage));
await assert.rejects(client.messages.create({ ...ask, messages: [] }), Anthropic.BadRequestError);

const begun = [{ role: "user", content: "hello" }, { role: "assistant", content: "It begins~" }];
assert.equal((await client.messages.create({ ...ask, messages: begun })).content[0].text, "and so it ends.");

const runner = client.beta.messages.toolRunner({
  ...ask,
  messages: [question],
  tools: [{ ...tools[0], type: "custom", run: async (input) => (assert.deepEqual(input, call), result) }],
});
const final = await runner;
assert.equal(final.content[0].text, answer);
