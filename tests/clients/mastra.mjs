// Mastra's agents, which ask a server by its URL.

import { assert, answer, call, dataUrl, load, result, system, task, url } from "./common.mjs";

const { Agent } = await load("@mastra/core/agent");
const { createTool } = await load("@mastra/core/tools");
const { z } = await load("zod");
let calls = 0;
const getWeather = createTool({
  id: "get_weather",
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string(), days: z.number() }),
  execute: async (input) => (calls++, assert.deepEqual(input.context ?? input, call), result),
});
const agent = new Agent({
  id: "weather", name: "weather", instructions: system, tools: { get_weather: getWeather },
  model: { id: "motet/any", url: url + "/v1", apiKey: "none" },
});
const messages = [{ role: "user", content: [{ type: "text", text: task }, { type: "image", image: dataUrl }] }];

const whole = await agent.generate(messages);
assert.ok(whole.text.endsWith(answer), whole.text);
const stream = await agent.stream(messages);
let text = "";
for await (const delta of stream.textStream) text += delta;
assert.ok(text.endsWith(answer), text);
assert.equal(calls, 2);
