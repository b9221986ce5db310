// OpenRouter's own SDK: a chat with a call of a tool, whole and streamed, an answer of Responses, and embeddings. (Its
// list of models wants prices and other things that only OpenRouter has.)

import { assert, answer, cached, call, dataUrl, load, result, schema, system, task, url } from "./common.mjs";

const { OpenRouter } = await load("@openrouter/sdk");
const client = new OpenRouter({ apiKey: "none", serverURL: url + "/v1" });
const tools = [{ type: "function", function: { name: "get_weather", description: "", parameters: schema } }];
const content = [{ type: "text", text: task }, { type: "image_url", imageUrl: { url: dataUrl } }];
const messages = [{ role: "system", content: system }, { role: "user", content }];
const chatRequest = { model: "any", messages, tools };

const first = await client.chat.send({ chatRequest });
const { message, finishReason } = first.choices[0];
assert.equal(finishReason, "tool_calls");
assert.equal(message.reasoning, "I need the weather.");
assert.deepEqual(JSON.parse(message.toolCalls[0].function.arguments), call);
messages.push(message, { role: "tool", toolCallId: message.toolCalls[0].id, content: result });
let text = "", usage;
for await (const event of await client.chat.send({ chatRequest: { ...chatRequest, stream: true } })) {
  text += event.choices[0]?.delta.content ?? "";
  usage = event.usage ?? usage;
}
assert.equal(text, answer);
if (usage) cached(first.usage.promptTokens, usage.promptTokens, usage.promptTokensDetails.cachedTokens);

const said = await client.beta.responses.send({ responsesRequest: { model: "any", input: "hello" } });
assert.equal(said.status, "completed");
const vectors = await client.embeddings.generate({ requestBody: { model: "any", input: ["one", "two"] } });
assert.equal(vectors.data.length, 2);
