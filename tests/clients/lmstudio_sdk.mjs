// LM Studio's own SDK, which speaks its protocol over WebSockets: answers, a tool with a picture, two answers at once,
// and what it asks of models.

import { assert, answer, base64, call, load, result, schema, task, url } from "./common.mjs";

const { LMStudioClient, Chat, rawFunctionTool } = await load("@lmstudio/sdk");
const logger = Object.fromEntries(["info", "error", "debug"].map((name) => [name, () => {}]));
const warnings = [];
logger.warn = (...said) => warnings.push(said.join(" "));
const client = new LMStudioClient({ baseUrl: url.replace("http", "ws"), logger });
const model = await client.llm.model("any");

{
  const picture = await client.files.prepareImageBase64("picture.png", base64);
  const calls = [];
  const weather = rawFunctionTool({
    name: "get_weather", description: "the weather", parametersJsonSchema: schema,
    implementation: (given) => (calls.push(given), result),
  });
  const chat = Chat.empty();
  chat.append("user", task, { images: [picture] });
  const messages = [], begun = [];
  const { rounds } = await model.act(chat, [weather], {
    onMessage: (message) => messages.push(message),
    onToolCallRequestStart: (round, id, info) => begun.push(info.toolCallId),
  });
  assert.equal(rounds, 2);
  assert.deepEqual(calls, [call]);
  assert.equal(begun.length, 1);
  assert.equal(messages.at(-1).getText(), answer);
}

{
  const hello = [{ role: "user", content: "hello" }];
  const whole = await model.respond(hello, { maxTokens: 100, temperature: 0 });
  assert.equal(whole.stats.stopReason, "eosFound");
  assert.ok(whole.content.length > 0 && whole.stats.predictedTokensCount > 0 && whole.modelInfo.identifier);
  let text = "";
  for await (const fragment of model.respond(hello)) text += fragment.content;
  assert.equal(text, whole.content);
  const [a, b] = await Promise.all([model.respond(hello), model.respond("Hello again")]);
  assert.equal(a.content, whole.content);
  assert.equal(b.content, whole.content);
  assert.equal((await model.complete("Once upon ~")).content, "and so it ends.");
  const short = await model.respond(hello, { maxTokens: 2 });
  assert.equal(short.stats.stopReason, "maxPredictedTokensReached");
  const odd = await model.respond(hello, { raw: { fields: [{ key: "llm.prediction.unknown", value: 1 }] } });
  assert.equal(odd.content, whole.content);
  assert.ok(warnings.some((line) => line.includes("not looked at: unknown")), warnings);
}

{
  const formatted = await model.applyPromptTemplate([{ role: "user", content: "hello" }]);
  assert.ok(formatted.includes("hello"));
  const tokens = await model.tokenize("hello");
  assert.equal(tokens.length, await model.countTokens("hello"));
  assert.equal(await model.getContextLength(), (await model.getModelInfo()).contextLength);
  const [listed] = await client.llm.listLoaded();
  assert.equal((await listed.getModelInfo()).format, "safetensors");
  assert.equal((await client.system.listDownloadedModels()).length, 1);
  assert.match((await client.system.getLMStudioVersion()).version, /^\d+\.\d+/);
  await assert.rejects(client.repository.searchModels({}), /there is no "searchModels"/);
}

{
  const embedder = await client.embedding.model("any");
  const { embedding } = await embedder.embed("hello");
  const both = await embedder.embed(["hello", "Once upon a time"]);
  assert.ok(embedding.length > 0 && Math.abs(Math.hypot(...embedding) - 1) < 1e-3);
  assert.deepEqual(both[0].embedding, embedding);
  assert.notDeepEqual(both[1].embedding, embedding);
  assert.equal(await embedder.countTokens("hello"), (await embedder.tokenize("hello")).length);
}
await client[Symbol.asyncDispose]();
