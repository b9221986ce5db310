// Genkit with its plugin for what speaks OpenAI's API.

import { assert, answer, call, dataUrl, load, result, system, task, url } from "./common.mjs";

const { genkit, z } = await load("genkit");
const { openAICompatible } = await load("@genkit-ai/compat-oai");
const ai = genkit({ plugins: [openAICompatible({ name: "motet", apiKey: "none", baseURL: url + "/v1" })] });
let calls = 0;
const getWeather = ai.defineTool({
  name: "get_weather",
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string(), days: z.number() }),
  outputSchema: z.string(),
}, async (input) => (calls++, assert.deepEqual(input, call), result));
const request = {
  model: "motet/any", system, tools: [getWeather], prompt: [{ text: task }, { media: { url: dataUrl, contentType: "image/png" } }],
};

const whole = await ai.generate(request);
assert.equal(whole.text, answer);
const { stream, response } = ai.generateStream(request);
let text = "";
for await (const chunk of stream) text += chunk.text;
assert.ok(text.endsWith(answer), text);
assert.equal((await response).text, answer);
assert.equal(calls, 2);
