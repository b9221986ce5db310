// The task that clients of Vercel's AI SDK complete, whole and streamed: a picture, a call of a tool, an answer.

import { assert, answer, cached, call, dataUrl, result, schema, system, task } from "./common.mjs";

// sdk: the module "ai"; model: of one of its providers.
export const complete = async ({ generateText, jsonSchema, stepCountIs, streamText, tool }, model) => {
  let calls = 0;
  const options = {
    model,
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
};
