// TanStack AI with its adapter for OpenAI, which streams responses.

import { assert, answer, call, dataUrl, load, result, system, task, url } from "./common.mjs";

const { chat, maxIterations, toolDefinition } = await load("@tanstack/ai");
const { createOpenaiChat } = await load("@tanstack/ai-openai");
const { z } = await load("zod");
let calls = 0;
const getWeather = toolDefinition({
  name: "get_weather",
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string(), days: z.number() }),
}).server(async (input) => (calls++, assert.deepEqual(input, call), result));
const content = [
  { type: "text", content: task },
  { type: "image", source: { type: "url", value: dataUrl } },
];
let text = "";
for await (const chunk of chat({
  adapter: createOpenaiChat("any", "none", { baseURL: url + "/v1" }),
  messages: [{ role: "user", content }], systemPrompts: [system], tools: [getWeather],
  agentLoopStrategy: maxIterations(3),
})) {
  assert.notEqual(chunk.type, "RUN_ERROR", JSON.stringify(chunk));
  text += chunk.type === "TEXT_MESSAGE_CONTENT" ? chunk.delta : "";
}
assert.ok(text.endsWith(answer), text);
assert.equal(calls, 1);
