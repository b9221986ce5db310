// Inngest's AgentKit, whose networks of agents ask a server by its URL.

import { assert, call, load, result, system, task, url } from "./common.mjs";

const { createAgent, createTool, openai } = await load("@inngest/agent-kit");
const { z } = await load("zod");
let calls = 0;
const agent = createAgent({
  name: "weather", system,
  model: openai({ model: "any", apiKey: "none", baseUrl: url + "/v1/" }),
  tools: [createTool({
    name: "get_weather", description: "The weather of a city.",
    parameters: z.object({ city: z.string(), days: z.number() }),
    handler: async (input) => (calls++, assert.deepEqual(input, call), result),
  })],
});
const done = await agent.run(task, { maxIter: 3 });
assert.equal(done.output.at(-1).content, "It will be sunny in Paris.");
assert.equal(calls, 1);
