// Files with OpenAI's own SDK and with Anthropic's, over one store: upload, list, read, delete.

import fs from "node:fs";
import { assert, load, picture, url } from "./common.mjs";

const { default: OpenAI, toFile } = await load("openai");
const { default: Anthropic, toFile: toFileToo } = await load("@anthropic-ai/sdk");
const openai = new OpenAI({ apiKey: "none", baseURL: url + "/v1", maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 });
const bytes = fs.readFileSync(picture);

const made = await openai.files.create({
  file: await toFile(Buffer.from("some notes"), "n\u00f6tes \"1\".txt", { type: "text/plain" }), purpose: "user_data",
  expires_after: { anchor: "created_at", seconds: 3600 },
});
assert.equal(made.filename, "n\u00f6tes \"1\".txt");
assert.equal(made.bytes, 10);
assert.equal(made.expires_at, made.created_at + 3600);
const shown = await openai.files.create({ file: fs.createReadStream(picture), purpose: "vision" });
assert.equal(shown.bytes, bytes.length);
const other = await anthropic.beta.files.upload({
  file: await toFileToo(bytes, "picture.png", { type: "image/png" }), expires_in_seconds: 7200,
});
assert.equal(Date.parse(other.expires_at) - Date.parse(other.created_at), 7200000);
assert.equal(other.mime_type, "image/png");
assert.equal(other.size_bytes, bytes.length);

assert.deepEqual(await openai.files.retrieve(made.id), made);
assert.equal((await anthropic.beta.files.retrieveMetadata(other.id)).filename, "picture.png");
assert.equal(await (await openai.files.content(made.id)).text(), "some notes");
for (const answer of [await openai.files.content(shown.id), await anthropic.beta.files.download(other.id)])
  assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);

const wanted = [other.id, shown.id, made.id];
const ids = async (pages) => {
  const found = [];
  for await (const file of pages) found.push(file.id);
  return found;
};
assert.deepEqual(await ids(openai.files.list({ limit: 2 })), wanted);
assert.deepEqual(await ids(openai.files.list({ order: "asc", purpose: "user_data" })), [made.id, other.id]);
assert.deepEqual(await ids(anthropic.beta.files.list({ limit: 1 })), wanted);

assert.equal((await openai.files.delete(made.id)).deleted, true);
await assert.rejects(openai.files.retrieve(made.id), OpenAI.NotFoundError);
assert.equal((await anthropic.beta.files.delete(shown.id)).type, "file_deleted");
assert.equal((await anthropic.beta.files.delete(other.id)).id, other.id);
await assert.rejects(anthropic.beta.files.retrieveMetadata(other.id), Anthropic.NotFoundError);
await assert.rejects(openai.files.create({ file: await toFile(bytes, "x"), purpose: "fun" }), OpenAI.BadRequestError);
