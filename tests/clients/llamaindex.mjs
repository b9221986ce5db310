// LlamaIndex's agents with its provider for OpenAI, which takes only OpenAI's own models for ones that call tools.

import { assert, call, dataUrl, load, result, system, task, url } from "./common.mjs";

const { OpenAI } = await load("@llamaindex/openai");
const { agent } = await load("@llamaindex/workflow");
const { tool } = await load("llamaindex");
const { z } = await load("zod");
let calls = 0;
const getWeather = tool({
  name: "get_weather",
  description: "The weather of a city.",
  parameters: z.object({ city: z.string(), days: z.number() }),
  execute: (input) => (calls++, assert.deepEqual(input, call), result),
});
const llm = new OpenAI({ model: "any", apiKey: "none", baseURL: url + "/v1" });
Object.defineProperty(llm, "supportToolCall", { value: true });
const done = await agent({ llm, tools: [getWeather], systemPrompt: system }).run(task);
assert.equal(done.data.result, "It will be sunny in Paris.");
assert.equal(calls, 1);

const content = [{ type: "text", text: task }, { type: "image_url", image_url: { url: dataUrl } }];
const seen = await llm.chat({ messages: [{ role: "user", content }], tools: [getWeather] });
assert.deepEqual(seen.message.options.toolCall.map((c) => c.name), ["get_weather"]);
assert.ok(seen.message.content.startsWith("Now"), seen.message.content); // what is said about pictures
