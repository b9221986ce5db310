// What people write with OpenAI's own SDK, against a motet server. usage: node sdk.mjs PACKAGES URL
// PACKAGES is the folder whose node_modules holds the package "openai".

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, url] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + "/"));
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")));
const client = new OpenAI({ apiKey: "secret", baseURL: url + "/v1", maxRetries: 0 });
const stranger = new OpenAI({ apiKey: "wrong", baseURL: url + "/v1", maxRetries: 0 });

const model = "tiny";
const messages = [{ role: "user", content: "hello world" }];
const ask = (more) => client.chat.completions.create({ model, messages, max_tokens: 12, seed: 1, ...more });

const tests = {
  async models() {
    const names = [];
    for await (const m of client.models.list()) names.push(m.id);
    assert.deepEqual(names, [model]);
    assert.equal((await client.models.retrieve(model)).max_model_len, 2048);
  },

  async "a whole answer with usage"() {
    const answer = await ask({});
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.choices.length, 1);
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.equal(typeof answer.choices[0].message.content, "string");
    assert.ok(["stop", "length"].includes(answer.choices[0].finish_reason));
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.equal(prompt_tokens + completion_tokens, total_tokens);
  },

  async "a stream says the same"() {
    const whole = await ask({});
    let text = "", usage = null, finish = null;
    for await (const chunk of await ask({ stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
    assert.equal(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens - 1);
  },

  async "the stream helper collects it"() {
    const runner = client.chat.completions.stream({ model, messages, max_tokens: 12, seed: 1 });
    let heard = "";
    runner.on("content", (delta) => (heard += delta));
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, heard);
    assert.equal(heard, (await ask({})).choices[0].message.content);
  },

  async logprobs() {
    const answer = await ask({ logprobs: true, top_logprobs: 5 });
    const content = answer.choices[0].logprobs.content;
    assert.equal(content.length, answer.usage.completion_tokens);
    for (const token of content) {
      assert.ok(token.logprob <= 0);
      assert.equal(token.top_logprobs.length, 5);
      assert.ok(token.top_logprobs[0].logprob >= token.top_logprobs[4].logprob);
    }
  },

  async "several choices and a seed"() {
    const options = { n: 3, temperature: 1.5, seed: 42 };
    const [a, b] = [await ask(options), await ask(options)];
    assert.equal(a.choices.length, 3);
    assert.deepEqual(a.choices.map((c) => c.message.content), b.choices.map((c) => c.message.content));
    assert.ok(new Set(a.choices.map((c) => c.message.content)).size > 1);
    const c = await ask({ ...options, seed: 43 });
    assert.notDeepEqual(a.choices.map((x) => x.message.content), c.choices.map((x) => x.message.content));
  },

  async "a stop string"() {
    const whole = (await ask({ temperature: 0, max_tokens: 30 })).choices[0].message.content;
    const stop = whole.slice(4, 6);
    const answer = await ask({ temperature: 0, max_tokens: 30, stop: [stop] });
    assert.equal(answer.choices[0].message.content, whole.slice(0, whole.indexOf(stop)));
    assert.equal(answer.choices[0].finish_reason, "stop");
  },

  async completions() {
    const answer = await client.completions.create({ model, prompt: ["the", "fox"], max_tokens: 5, ignore_eos: true,
                                                    logprobs: 2 });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1]);
    assert.equal(answer.choices[0].logprobs.tokens.length, 5);
    let text = "";
    const streamed = { model, prompt: "the", max_tokens: 5, temperature: 0, stream: true };
    for await (const chunk of await client.completions.create(streamed)) text += chunk.choices[0]?.text ?? "";
    const whole = await client.completions.create({ ...streamed, stream: false });
    assert.equal(text, whole.choices[0].text);
  },

  async "an abort ends the request on the server"() {
    const stream = await ask({ stream: true, max_tokens: 1500, n: 24, ignore_eos: true });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 30) break; // leaving the loop aborts
    const controller = new AbortController();
    const pending = client.chat.completions.create(
      { model, messages, max_tokens: 1500, n: 24, ignore_eos: true }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(pending, OpenAI.APIUserAbortError);
    for (let i = 0; ; i++) {
      const status = await (await fetch(url + "/v1/status", { headers: { authorization: "Bearer secret" } })).json();
      if (status.requests.length === 0) break;
      assert.ok(i < 500, "it still runs");
      await new Promise((done) => setTimeout(done, 20));
    }
  },

  async embeddings() {
    const input = ["hello world", "the quick brown fox"];
    const packed = await client.embeddings.create({ model, input }); // which asks for base64 by itself
    const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
    assert.deepEqual(packed.data.map((d) => d.index), [0, 1]);
    for (const [i, { embedding }] of packed.data.entries()) {
      assert.equal(embedding.length, 64);
      assert.ok(Math.abs(embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5);
      embedding.forEach((x, k) => assert.ok(Math.abs(x - plain.data[i].embedding[k]) < 1e-6));
    }
    assert.equal(packed.usage.prompt_tokens, packed.usage.total_tokens);
    const short = await client.embeddings.create({ model, input: input[0], dimensions: 8 });
    assert.equal(short.data[0].embedding.length, 8);
    const many = await client.embeddings.create({ model, input: Array.from({ length: 200 }, (_, i) => `text ${i}`) });
    assert.deepEqual(many.data.map((d) => d.index), [...Array(200).keys()]);
    await assert.rejects(client.embeddings.create({ model, input: [] }), (e) =>
      e instanceof OpenAI.BadRequestError && e.param === "input");
    await assert.rejects(client.embeddings.create({ model: "gpt-17", input }), OpenAI.NotFoundError);
  },

  async "errors are of their classes"() {
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
    await assert.rejects(ask({ model: "gpt-17" }), (e) =>
      e instanceof OpenAI.NotFoundError && e.code === "model_not_found" && e.param === "model");
    await assert.rejects(ask({ temperature: 7 }), (e) =>
      e instanceof OpenAI.BadRequestError && e.param === "temperature" && /from 0 to 2/.test(e.message));
    await assert.rejects(ask({ messages: [{ role: "user", content: "x".repeat(9000) }] }), (e) =>
      e instanceof OpenAI.BadRequestError && e.code === "context_length_exceeded");
    await assert.rejects(ask({ messages: [{ role: "user", content: "x".repeat(9000) }], stream: true }), (e) =>
      e instanceof OpenAI.BadRequestError && e.code === "context_length_exceeded");
  },
};

let passed = 0, failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    passed++;
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
console.log(`api_sdk: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
