// LM Studio's REST API, as OpenAI's SDK and Vercel's AI SDK speak to it by its base URL, and with plain requests.

import { assert, answer, call, dataUrl, load, result, schema, task, url } from "./common.mjs";

const { default: OpenAI } = await load("openai");
const { generateText, streamText } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const base = url + "/api/v0";
const client = new OpenAI({ baseURL: base, apiKey: "lm-studio", maxRetries: 0 });
const told = (chunk) => {
  assert.ok(chunk.stats.time_to_first_token > 0 && chunk.stats.stop_reason === "eosFound", JSON.stringify(chunk.stats));
  assert.ok(chunk.model_info.arch && chunk.model_info.context_length > 0);
  assert.deepEqual(chunk.runtime.supported_formats, ["safetensors"]);
};

{
  const tools = [{ type: "function", function: { name: "get_weather", description: "the weather", parameters: schema } }];
  const parts = [{ type: "text", text: task }, { type: "image_url", image_url: { url: dataUrl } }];
  const messages = [{ role: "user", content: parts }];
  const first = await client.chat.completions.create({ model: "any", messages, tools });
  assert.equal(first.stats.stop_reason, "toolCalls");
  const { message } = first.choices[0];
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), call);
  messages.push(message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: result });
  const second = await client.chat.completions.create({ model: "any", messages, tools });
  assert.equal(second.choices[0].message.content, answer);
  told(second);
}

{
  let text = "", last;
  const messages = [{ role: "user", content: "hello" }];
  for await (const chunk of await client.chat.completions.create({ model: "any", messages, stream: true })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    last = chunk;
  }
  assert.ok(text.length > 0);
  told(last);
  const said = await client.completions.create({ model: "any", prompt: "Once upon ~", max_tokens: 100 });
  assert.equal(said.choices[0].text, "and so it ends.");
  told(said);
}

{
  const provider = createOpenAICompatible({ name: "lmstudio", baseURL: base });
  const options = { model: provider("any"), prompt: "hello", maxRetries: 0 };
  const whole = await generateText(options);
  let text = "";
  for await (const delta of streamText(options).textStream) text += delta;
  assert.ok(text.length > 0 && text === whole.text, text);
}

{
  const { data } = await (await fetch(base + "/models")).json();
  assert.ok(data.every((m) => ["llm", "vlm", "embeddings"].includes(m.type) && m.compatibility_type && m.arch));
  const one = await (await fetch(`${base}/models/${data[0].id}`)).json();
  assert.deepEqual(one, data[0]);
  assert.equal(one.state, "loaded");
  assert.equal((await client.models.list()).data[0].id, data[0].id);
}
