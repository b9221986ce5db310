// Mistral's own SDK: a chat with a call of a tool, whole and streamed, an answer that is begun, and embeddings.

import { assert, answer, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { Mistral } = await load("@mistralai/mistralai");
const client = new Mistral({ apiKey: "none", serverURL: url });
const model = "any";
const tools = [{ type: "function", function: { name: "get_weather", description: "", parameters: schema } }];
const content = [{ type: "text", text: task }, { type: "image_url", imageUrl: { url: dataUrl } }];
const messages = [{ role: "system", content: system }, { role: "user", content }];

const forced = [{ role: "user", content: "replay:forced What will the weather be in Paris?" }];
const must = await client.chat.complete({ model, messages: forced, tools, toolChoice: "any" });
assert.deepEqual(JSON.parse(must.choices[0].message.toolCalls[0].function.arguments), call);

const first = await client.chat.complete({ model, messages, tools });
const message = first.choices[0].message;
assert.equal(first.choices[0].finishReason, "tool_calls");
assert.deepEqual(JSON.parse(message.toolCalls[0].function.arguments), call);
messages.push(message, { role: "tool", name: "get_weather", toolCallId: message.toolCalls[0].id, content: result });
let text = "";
for await (const event of await client.chat.stream({ model, messages, tools }))
  text += event.data.choices[0]?.delta.content ?? "";
assert.equal(text, answer);

const begun = [{ role: "user", content: "hello" }, { role: "assistant", content: "It begins~", prefix: true }];
assert.equal((await client.chat.complete({ model, messages: begun })).choices[0].message.content, "and so it ends.");

const vectors = await client.embeddings.create({ model, inputs: ["one", "two"] });
assert.equal(vectors.data.length, 2);
