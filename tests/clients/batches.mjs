// Batches with OpenAI's own SDK and with Anthropic's: create, wait, read the results, list, cancel, delete.

import { assert, load, url } from "./common.mjs";

const { default: OpenAI, toFile } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const openai = new OpenAI({ apiKey: "none", baseURL: url + "/v1", maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 });
const until = async (look, done) => {
  for (;;) {
    const found = await look();
    if (done(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const body = (words) => ({ model: "any", max_tokens: 20, messages: [{ role: "user", content: words }] });

const lines = ["a", "b"].map((id) => JSON.stringify(
  { custom_id: id, method: "POST", url: "/v1/chat/completions", body: body("hello " + id) }));
const file = await openai.files.create({ file: await toFile(Buffer.from(lines.join("\n")), "lines.jsonl"), purpose: "batch" });
const made = await openai.batches.create(
  { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h", metadata: { by: "a test" } });
assert.equal(made.object, "batch");
const over = await until(() => openai.batches.retrieve(made.id), (batch) => batch.status === "completed");
assert.deepEqual(over.request_counts, { total: 2, completed: 2, failed: 0 });
assert.equal(over.metadata.by, "a test");
const results = (await (await openai.files.content(over.output_file_id)).text()).trim().split("\n").map(JSON.parse);
assert.deepEqual(results.map((each) => each.custom_id).sort(), ["a", "b"]);
for (const each of results) {
  const alone = await openai.chat.completions.create(body("hello " + each.custom_id));
  assert.equal(each.response.body.choices[0].message.content, alone.choices[0].message.content);
}
const listed = [];
for await (const each of openai.batches.list({ limit: 1 })) listed.push(each.id);
assert.ok(listed.includes(made.id));
await assert.rejects(openai.batches.cancel(made.id), OpenAI.ConflictError);
await assert.rejects(openai.batches.retrieve("batch_none"), OpenAI.NotFoundError);

const other = await anthropic.messages.batches.create(
  { requests: ["a", "b"].map((id) => ({ custom_id: id, params: body("hello " + id) })) });
assert.equal(other.processing_status, "in_progress");
const ended = await until(() => anthropic.messages.batches.retrieve(other.id), (batch) => batch.processing_status === "ended");
assert.equal(ended.request_counts.succeeded, 2);
const found = [];
for await (const each of await anthropic.messages.batches.results(other.id)) {
  assert.equal(each.result.type, "succeeded");
  const alone = await anthropic.messages.create(body("hello " + each.custom_id));
  assert.deepEqual(each.result.message.content, alone.content);
  found.push(each.custom_id);
}
assert.deepEqual(found.sort(), ["a", "b"]);
const ids = [];
for await (const each of anthropic.messages.batches.list({ limit: 1 })) ids.push(each.id);
assert.deepEqual(ids, [other.id]);
assert.equal((await anthropic.messages.batches.cancel(other.id)).id, other.id);
assert.equal((await anthropic.messages.batches.delete(other.id)).type, "message_batch_deleted");
await assert.rejects(anthropic.messages.batches.retrieve(other.id), Anthropic.NotFoundError);
for (const id of [file.id, over.output_file_id]) await openai.files.delete(id);
