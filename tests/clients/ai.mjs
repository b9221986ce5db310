// Vercel's AI SDK with its provider for servers that speak as OpenAI does.

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const provider = createOpenAICompatible({ name: "motet", baseURL: url + "/v1", includeUsage: true });
let calls = 0;
const options = {
  model: provider("any"),
  system,
  messages: [{ role: "user", content: [{ type: "text", text: task }, { type: "image", image: dataUrl }] }],
  stopWhen: stepCountIs(3),
  maxRetries: 0,
  tools: {
    get_weather: tool({
      description: "The weather of a city.",
      inputSchema: jsonSchema(schema),
      execute: async (input) => (calls++, assert.deepEqual(input, call), result),
    }),
  },
};

const whole = await generateText(options);
assert.equal(whole.text, answer);
assert.equal(whole.steps.length, 2);
assert.equal(whole.steps[0].reasoningText, "I need the weather.");

const stream = streamText(options);
let text = "";
for await (const delta of stream.textStream) text += delta;
assert.ok(text.endsWith(answer), text);
const [first, second] = (await stream.steps).map((step) => step.usage);
cached(first.inputTokens, second.inputTokens, second.cachedInputTokens ?? second.inputTokenDetails?.cacheReadTokens);
assert.equal(calls, 2);
