// Strands Agents with its provider for OpenAI, by chat completions and by responses.

import { assert, answer, base64, call, load, result, system, task, url } from "./common.mjs";

const { Agent, ImageBlock, TextBlock, tool } = await load("@strands-agents/sdk");
const { OpenAIModel } = await load("@strands-agents/sdk/models/openai");
const { z } = await load("zod");
let calls = 0;
const getWeather = tool({
  name: "get_weather",
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string(), days: z.number() }),
  callback: (input) => (calls++, assert.deepEqual(input, call), result),
});
for (const api of ["chat", "responses"]) {
  const model = new OpenAIModel({ api, apiKey: "none", modelId: "any", clientConfig: { baseURL: url + "/v1" } });
  const agent = new Agent({ model, tools: [getWeather], systemPrompt: system, printer: false });
  const picture = new ImageBlock({ format: "png", source: { bytes: Buffer.from(base64, "base64") } });
  const done = await agent.invoke([new TextBlock(task), picture]);
  assert.ok(done.toString().trim().endsWith(answer), done.toString());
}
assert.equal(calls, 2);
