// LangChain's ChatOllama and OllamaEmbeddings.

import { assert, answer, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { ChatOllama, OllamaEmbeddings } = await load("@langchain/ollama");
const { HumanMessage, SystemMessage, ToolMessage } = await load("@langchain/core/messages");

const options = { model: "any", baseUrl: url, temperature: 0, numCtx: 8192, keepAlive: "5m", maxRetries: 0 };
const tool = { type: "function", function: { name: "get_weather", parameters: schema } };

{
  const bound = new ChatOllama(options).bindTools([tool]);
  const content = [{ type: "text", text: task }, { type: "image_url", image_url: { url: dataUrl } }];
  const messages = [new SystemMessage(system), new HumanMessage({ content })];
  const first = await bound.invoke(messages);
  assert.equal(first.tool_calls.length, 1);
  assert.deepEqual(first.tool_calls[0].args, call);
  assert.equal(first.response_metadata.done_reason, "stop");
  messages.push(first, new ToolMessage({ content: result, tool_call_id: first.tool_calls[0].id }));
  let last = null;
  for await (const chunk of await bound.stream(messages)) last = last ? last.concat(chunk) : chunk;
  assert.equal(last.text, answer);
  assert.ok(last.usage_metadata.input_tokens > first.usage_metadata.input_tokens);
  assert.ok(last.usage_metadata.output_tokens > 0);
}

{
  const said = await new ChatOllama({ ...options, think: true }).invoke("replay:weather hello");
  assert.ok(said.content.length > 0);
  const choice = { type: "object", properties: { it: { enum: ["yes", "no"] } }, required: ["it"], additionalProperties: false };
  const plain = await new ChatOllama({ ...options, format: choice, think: false }).invoke("Is it so?");
  assert.ok(["yes", "no"].includes(JSON.parse(plain.content).it));
}

{
  const embeddings = new OllamaEmbeddings({ model: "any", baseUrl: url, maxRetries: 0 });
  const [one, two] = await embeddings.embedDocuments(["one", "two"]);
  assert.equal(one.length, two.length);
  assert.deepEqual(await embeddings.embedQuery("one"), one);
}
