// Vercel's AI SDK with two of its providers: for servers that speak as OpenAI does, and Anthropic's.

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const providers = [
  createOpenAICompatible({ name: "motet", baseURL: url + "/v1", includeUsage: true }),
  createAnthropic({ baseURL: url + "/v1", apiKey: "none" }),
];

for (const provider of providers) {
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
  const fromCache = second.cachedInputTokens ?? second.inputTokenDetails?.cacheReadTokens;
  // AI SDK 5 tells Anthropic's input tokens without those from the cache
  const all = (usage) => usage.inputTokens + (second.inputTokens < fromCache ? usage.cachedInputTokens : 0);
  cached(all(first), all(second), fromCache);
  assert.equal(calls, 2);
}
