// OpenRouter's provider for Vercel's AI SDK.

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai-6");
const { createOpenRouter } = await load("@openrouter/ai-sdk-provider");
const provider = createOpenRouter({ baseURL: url + "/v1", apiKey: "none", compatibility: "strict" });
const options = {
  model: provider.chat("any"),
  system,
  messages: [{ role: "user", content: [{ type: "text", text: task }, { type: "image", image: dataUrl }] }],
  stopWhen: stepCountIs(3),
  maxRetries: 0,
  tools: {
    get_weather: tool({
      description: "The weather of a city.",
      inputSchema: jsonSchema(schema),
      execute: async (input) => (assert.deepEqual(input, call), result),
    }),
  },
};

const whole = await generateText(options);
assert.equal(whole.text, answer);
assert.equal(whole.steps[0].reasoningText, "I need the weather.");

const stream = streamText(options);
let text = "";
for await (const delta of stream.textStream) text += delta;
assert.ok(text.endsWith(answer), text);
const [first, second] = (await stream.steps).map((step) => step.usage);
cached(first.inputTokens, second.inputTokens, second.cachedInputTokens);
