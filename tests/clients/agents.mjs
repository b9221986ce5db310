// OpenAI's agents SDK, which speaks responses: the loop calls the tool and answers.

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { Agent, OpenAIProvider, Runner, tool } = await load("@openai/agents");
let calls = 0;
const agent = new Agent({
  name: "weather", model: "any", instructions: system,
  tools: [tool({
    name: "get_weather", description: "The weather of a city.", parameters: schema, strict: true,
    execute: async (input) => (calls++, assert.deepEqual(input, call), result),
  })],
});

const question = [{
  role: "user",
  content: [{ type: "input_text", text: task }, { type: "input_image", image: dataUrl }],
}];

for (const useResponses of [true, false]) {
  const modelProvider = new OpenAIProvider({ apiKey: "none", baseURL: url + "/v1", useResponses });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const whole = await runner.run(agent, question);
  assert.equal(whole.finalOutput, answer);
  const [first, second] = whole.rawResponses.map((response) => response.usage);
  const details = [second.inputTokensDetails].flat();
  cached(first.inputTokens, second.inputTokens, details[0].cached_tokens);

  const stream = await runner.run(agent, question, { stream: true });
  let text = "";
  for await (const delta of stream.toTextStream()) text += delta;
  await stream.completed;
  assert.ok(text.endsWith(answer), text);
}
assert.equal(calls, 4);
