// OpenAI's own SDK: chat completions and responses, whole and streamed, each with a call of a tool.

import { assert, answer, cached, call, dataUrl, load, major, result, schema, system, task, url } from "./common.mjs";

const { default: OpenAI } = await load("openai");
const client = new OpenAI({ apiKey: "none", baseURL: url + "/v1", maxRetries: 0 });
const model = "gpt-any";

{
  const tools = [{ type: "function", function: { name: "get_weather", parameters: schema } }];
  const content = [{ type: "text", text: task }, { type: "image_url", image_url: { url: dataUrl } }];
  const messages = [{ role: "system", content: system }, { role: "user", content }];
  const first = await client.chat.completions.create({ model, messages, tools });
  const message = first.choices[0].message;
  assert.equal(first.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), call);
  messages.push(message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: result });
  const second = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
  const final = await second.finalChatCompletion();
  assert.equal(final.choices[0].message.content, answer);
  const usage = final.usage ?? (await second.totalUsage());
  cached(first.usage.prompt_tokens, usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens);
}

{
  const tools = [{ type: "function", name: "get_weather", parameters: schema, strict: false }];
  const content = [{ type: "input_text", text: task }, { type: "input_image", image_url: dataUrl, detail: "auto" }];
  const input = [{ role: "user", content }];
  const stream = client.responses.stream({ model, instructions: system, input, tools });
  let text = "", spelled = "";
  stream.on("response.output_text.delta", (e) => (text += e.delta));
  stream.on("response.function_call_arguments.delta", (e) => (spelled += e.delta));
  const first = await stream.finalResponse();
  const called = first.output.find((item) => item.type === "function_call");
  const said = first.output.find((item) => item.type === "message");
  assert.equal(said.content[0].text, text); // output_text is not set by finalResponse() of versions 5 and 6
  assert.equal(called.arguments, spelled);
  assert.deepEqual(JSON.parse(spelled), call);
  assert.equal(first.output[0].type, "reasoning");
  const second = await client.responses.create({
    model, tools, instructions: system, previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: called.call_id, output: result }],
  });
  assert.equal(second.output_text, answer);
  cached(first.usage.input_tokens, second.usage.input_tokens, second.usage.input_tokens_details.cached_tokens);
  assert.equal((await client.responses.retrieve(second.id)).output_text, answer);
  const types = [];
  for await (const item of client.responses.inputItems.list(second.id, { order: "asc", limit: 2 }))
    types.push(item.type);
  assert.deepEqual(types, ["message", "reasoning", "message", "function_call", "function_call_output"]);
  await client.responses.delete(second.id);
  await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);
}

{
  let response = await client.responses.create({ model, input: "hello", background: true });
  while (["queued", "in_progress"].includes(response.status)) response = await client.responses.retrieve(response.id);
  assert.equal(response.status, "completed");
  const again = await client.responses.create({
    model, input: "hello", include: ["message.output_text.logprobs"], top_logprobs: 1,
  });
  assert.equal(again.output_text, response.output_text);
  assert.equal(again.output[0].content[0].logprobs.map((token) => token.token).join(""), again.output_text);
}

if (!major) { // earlier versions have neither
  const { ResponsesWS } = await load("openai/resources/responses/ws");
  const socket = new ResponsesWS(client);
  const turn = async (fields) => {
    socket.send({ type: "response.create", model, store: false, ...fields });
    let text = "";
    for await (const event of socket.stream()) {
      if (event.type === "error") throw event.error;
      if (event.message?.type === "response.output_text.delta") text += event.message.delta;
      if (event.message?.type === "response.completed") return { text, response: event.message.response };
    }
  };
  const tools = [{ type: "function", name: "get_weather", parameters: schema, strict: false }];
  const content = [{ type: "input_text", text: task }, { type: "input_image", image_url: dataUrl, detail: "auto" }];
  const first = await turn({ tools, instructions: system, input: [{ role: "user", content }] });
  const called = first.response.output.find((item) => item.type === "function_call");
  assert.deepEqual(JSON.parse(called.arguments), call);
  const second = await turn({
    tools, instructions: system, previous_response_id: first.response.id,
    input: [{ type: "function_call_output", call_id: called.call_id, output: result }],
  });
  assert.equal(second.text, answer);
  const usage = second.response.usage;
  cached(first.response.usage.input_tokens, usage.input_tokens, usage.input_tokens_details.cached_tokens);
  await assert.rejects(turn({ input: "hello", previous_response_id: "resp_none" }), /was not found here/);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.close();
  await closed;

  const short = await client.responses.compact({ model, input: "hello" });
  assert.deepEqual(short.output.map((item) => item.type), ["message", "compaction"]);
  const after = await client.responses.create({ model, input: [...short.output, { role: "user", content: "hello" }] });
  assert.equal(after.status, "completed");
}
