// LangChain's ChatOpenAI, with chat completions and with responses.

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { ChatOpenAI } = await load("@langchain/openai");
const { HumanMessage, SystemMessage, ToolMessage } = await load("@langchain/core/messages");

for (const useResponsesApi of [false, true]) {
  const bound = new ChatOpenAI({
    model: "any", apiKey: "none", maxRetries: 0, useResponsesApi, configuration: { baseURL: url + "/v1" },
  }).bindTools([{ type: "function", function: { name: "get_weather", parameters: schema } }]);
  const content = [{ type: "text", text: task }, { type: "image_url", image_url: { url: dataUrl } }];
  const messages = [new SystemMessage(system), new HumanMessage({ content })];
  const first = await bound.invoke(messages);
  assert.equal(first.tool_calls.length, 1);
  assert.deepEqual(first.tool_calls[0].args, call);
  messages.push(first, new ToolMessage({ content: result, tool_call_id: first.tool_calls[0].id }));
  let last = null;
  for await (const chunk of await bound.stream(messages)) last = last ? last.concat(chunk) : chunk;
  assert.equal(last.text, answer);
  const usage = last.usage_metadata;
  cached(first.usage_metadata.input_tokens, usage.input_tokens, usage.input_token_details.cache_read);
}
