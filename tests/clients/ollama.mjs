// npm's ollama: a call of a tool with a picture, thinking, formats, a prompt, vectors, and what it tells of models.

import { assert, answer, base64, call, load, result, schema, system, task, url } from "./common.mjs";

const { Ollama } = await load("ollama");
const client = new Ollama({ host: url });
const model = "any:latest";
const tools = [{ type: "function", function: { name: "get_weather", description: "the weather", parameters: schema } }];

for (const stream of [false, true]) {
  const messages = [{ role: "system", content: system }, { role: "user", content: task, images: [base64] }];
  const turn = async () => {
    if (!stream) return client.chat({ model, messages, tools });
    const whole = { message: { role: "assistant", content: "", thinking: "", tool_calls: [] } };
    for await (const part of await client.chat({ model, messages, tools, stream })) {
      whole.message.content += part.message.content;
      whole.message.thinking += part.message.thinking ?? "";
      whole.message.tool_calls.push(...(part.message.tool_calls ?? []));
      Object.assign(whole, { ...part, message: whole.message });
    }
    return whole;
  };
  const first = await turn();
  assert.equal(first.model, model);
  assert.ok(first.done && first.done_reason === "stop" && first.message.thinking.length > 0);
  assert.deepEqual(first.message.tool_calls.map((c) => c.function.arguments), [call]);
  messages.push(first.message, { role: "tool", tool_name: "get_weather", content: result });
  const second = await turn();
  assert.equal(second.message.content, answer);
  for (const name of ["total_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"])
    assert.ok(second[name] > 0, name);
  assert.ok(second.prompt_eval_count > first.prompt_eval_count);
}

{
  const choice = { type: "string", enum: ["yes", "no"] };
  const said = await client.chat({
    model, format: choice, think: false, keep_alive: "10m", options: { temperature: 0, num_ctx: 4096, seed: 1 },
    messages: [{ role: "user", content: "Is it so?" }],
  });
  assert.ok(choice.enum.includes(JSON.parse(said.message.content)));
  const logprobs = await client.chat({
    model, logprobs: true, top_logprobs: 1, messages: [{ role: "user", content: "hello" }],
  });
  assert.equal(logprobs.logprobs.map((t) => t.token).join("").slice(0, 4), logprobs.message.content.slice(0, 4));
}

{
  const whole = await client.generate({ model, prompt: "hello", system: "Be brief." });
  let text = "";
  for await (const part of await client.generate({ model, prompt: "hello", system: "Be brief.", stream: true }))
    text += part.response;
  assert.equal(text, whole.response);
  assert.ok(whole.done && text.length > 0);
  assert.equal((await client.generate({ model, prompt: "" })).done_reason, "load");
  const raw = await client.generate({ model, prompt: "Once upon ~", raw: true });
  assert.equal(raw.response, "and so it ends.");
}

{
  const many = await client.embed({ model, input: ["one", "two"] });
  assert.equal(many.embeddings.length, 2);
  const { embedding } = await client.embeddings({ model, prompt: "one" });
  assert.equal(embedding.length, many.embeddings[0].length);
}

{
  const { models } = await client.list();
  const listed = models[0];
  assert.ok(listed.name.endsWith(":latest") && listed.size > 0 && listed.details.format === "safetensors");
  assert.equal((await client.ps()).models[0].name, listed.name);
  const shown = await client.show({ model: listed.name });
  assert.deepEqual([...shown.capabilities].sort(), ["completion", "thinking", "tools", "vision"]);
  assert.ok(shown.model_info[`${shown.model_info["general.architecture"]}.context_length"`.replace('"', "")] > 0);
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
}

// A model that is made of another, a copy of it, and a conversation that goes on.
{
  const { models } = await client.list();
  const from = models[0].name;
  const made = await client.create({
    model: "mario", from, system: "You are Mario.", parameters: { temperature: 0, num_predict: 3, stop: ["zzz"] }, stream: false,
  });
  assert.equal(made.status, "success");
  const statuses = [];
  for await (const part of await client.create({ model: "luigi", from: "mario", system: "You are Luigi.", stream: true }))
    statuses.push(part.status);
  assert.ok(statuses.length > 2 && statuses.at(-1) === "success", statuses);
  assert.equal((await client.copy({ source: "mario", destination: "mario-backup" })).status, "success");
  const names = (await client.list()).models.map((m) => m.name);
  assert.deepEqual(names.slice(-3), ["luigi:latest", "mario:latest", "mario-backup:latest"], names);
  const shown = await client.show({ model: "mario-backup" });
  assert.ok(shown.system === "You are Mario." && /num_predict +3/.test(shown.parameters), JSON.stringify(shown));
  const said = await client.chat({ model: "luigi", messages: [{ role: "user", content: "hello" }] });
  assert.ok(said.eval_count <= 3 && said.model === "luigi");
  for (const name of ["mario", "luigi", "mario-backup"]) assert.equal((await client.delete({ model: name })).status, "success");
  assert.equal((await client.list()).models.length, models.length);
  const first = await client.generate({ model, prompt: "hello" });
  const second = await client.generate({ model, prompt: "hello", context: first.context });
  assert.equal(second.prompt_eval_count, first.context.length + first.prompt_eval_count);
}

// An answer that is broken off, and what is wrong.
{
  const stream = await client.chat({ model, stream: true, messages: [{ role: "user", content: "hello" }] });
  client.abort();
  await assert.rejects(async () => { for await (const part of stream) void part; });
  const wrong = (error) => error.name === "ResponseError" && error.status_code === 400 && /temperature/.test(error.message);
  await assert.rejects(client.chat({ model, options: { temperature: "hot" }, messages: [{ role: "user", content: "" }] }), wrong);
}
