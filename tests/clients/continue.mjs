// The requests of Continue's Ollama provider (core/llm/llms/Ollama.ts), which no package of its own holds: what it asks of
// a model before it talks, how it spells messages, options and tools, and how it reads what comes.

import { assert, answer, base64, call, result, schema, system, task, url } from "./common.mjs";

const post = (path, body) => fetch(new URL(path, url + "/"), {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

// What is undefined is left out.
const settings = (contextLength, more) => ({
  temperature: undefined, top_p: undefined, top_k: undefined, num_predict: 2048, stop: undefined, num_ctx: contextLength,
  mirostat: undefined, num_thread: undefined, use_mmap: undefined, min_p: undefined, num_gpu: undefined, ...more,
});

// Lines, whatever pieces they come in.
async function* lines(response) {
  assert.ok(response.ok, `${response.status}`);
  let buffer = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (buffer + piece).split("\n");
    buffer = parts.pop();
    for (const part of parts)
      if (part.trim() !== "") yield JSON.parse(part);
  }
  assert.equal(buffer, "");
}

const { models } = await (await fetch(url + "/api/tags")).json();
const model = models.map((m) => m.name)[0];
const shown = await (await post("api/show", { name: model })).json();
const contextLength = Number(shown.parameters.split("\n").map((l) => l.match(/^(\S+)\s+((?:".*")|\S+)$/))
  .find((m) => m?.[1] === "num_ctx")[2]);
assert.ok(contextLength > 1000 && !shown.template.includes(".Suffix"));

const messages = [{ role: "system", content: system }, { role: "user", content: task, images: [base64] }];
const chat = async (tools) => {
  const said = { role: "assistant", content: "", thinking: "", tool_calls: [] };
  for await (const line of lines(await post("api/chat", {
    model, messages, options: settings(contextLength), think: undefined, keep_alive: 1800, stream: undefined, tools,
  }))) {
    assert.ok(!("error" in line) && !("type" in line) && line.message.role === "assistant");
    said.content += line.message.content;
    said.thinking += line.message.thinking ?? "";
    said.tool_calls.push(...(line.message.tool_calls ?? []));
  }
  return said;
};
const first = await chat([{ type: "function", function: { name: "get_weather", description: "x", parameters: schema } }]);
assert.ok(first.thinking.length > 0);
assert.deepEqual(first.tool_calls.map((c) => [c.function.name, c.function.arguments]), [["get_weather", call]]);

// Tools are sent behind a user's message only, and results say nothing of the call.
messages.push({ role: "assistant", content: first.content, tool_calls: first.tool_calls.map(
  (c) => ({ function: { name: c.function.name, arguments: c.function.arguments } })) }, { role: "tool", content: result });
assert.equal((await chat(undefined)).content, answer);

let text = "";
for await (const line of lines(await post("api/generate", {
  model, prompt: "Once upon ~", raw: true, options: settings(contextLength, { stop: ["STOP"] }), keep_alive: 1800,
}))) text += line.response;
assert.equal(text, "and so it ends.");

const { embeddings } = await (await post("api/embed", { model, input: ["one", "two"] })).json();
assert.equal(embeddings.length, 2);
