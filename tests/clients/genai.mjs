// Google's own SDK: a call of a tool with a picture, whole, streamed and by its chat, thinking, formats, counting,
// vectors, models, and what is wrong.

import { assert, answer, base64, cached, call, load, result, system, task, url } from "./common.mjs";

const { GoogleGenAI, FunctionCallingConfigMode, ThinkingLevel, Type } = await load("@google/genai");
const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: url } });
const model = "gemini-any";
const described = { name: "get_weather", description: "The weather of a city." };
const parameters = {
  type: Type.OBJECT,
  properties: { city: { type: Type.STRING }, days: { type: Type.INTEGER, nullable: true } },
  required: ["city", "days"],
  propertyOrdering: ["city", "days"],
};
const tools = [{ functionDeclarations: [{ ...described, parameters }] }];
const picture = { inlineData: { mimeType: "image/png", data: base64 } };
const config = { systemInstruction: system, tools, thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } };
const finish = (response) => response.candidates[0].finishReason;

for (const stream of [false, true]) {
  const contents = [{ role: "user", parts: [picture, { text: task }] }];
  const turn = async () => {
    if (!stream) return client.models.generateContent({ model, contents, config });
    const parts = [];
    let last;
    for await (last of await client.models.generateContentStream({ model, contents, config }))
      parts.push(...last.candidates[0].content.parts);
    last.candidates[0].content.parts = parts;
    return last;
  };
  const first = await turn();
  assert.equal(finish(first), "STOP");
  assert.deepEqual(first.functionCalls.map((f) => [f.name, f.args]), [["get_weather", call]]);
  assert.ok(first.functionCalls[0].id && first.responseId && first.modelVersion);
  assert.ok(first.candidates[0].content.parts[0].thought);
  const signed = first.candidates[0].content.parts.filter((part) => part.thoughtSignature);
  assert.ok(signed.length === 1 && signed[0].functionCall);
  const used = first.usageMetadata;
  assert.ok(used.thoughtsTokenCount > 0 && used.candidatesTokenCount > 0);
  assert.equal(used.totalTokenCount, used.promptTokenCount + used.thoughtsTokenCount + used.candidatesTokenCount);

  const { id, name } = first.functionCalls[0];
  contents.push({ role: "model", parts: first.candidates[0].content.parts.filter((part) => !part.thought || stream) });
  contents.push({ role: "user", parts: [{ functionResponse: { id, name, response: { output: result } } }] });
  const second = await turn();
  assert.equal(second.text, answer);
  cached(used.promptTokenCount, second.usageMetadata.promptTokenCount, second.usageMetadata.cachedContentTokenCount);
}

// The SDK's chat keeps each piece of a stream as a content of its own.
{
  const chat = client.chats.create({ model, config });
  let last;
  const calls = [];
  for await (last of await chat.sendMessageStream({ message: [picture, task] })) calls.push(...(last.functionCalls ?? []));
  assert.deepEqual(calls.map((f) => f.args), [call]);
  const reply = { functionResponse: { name: "get_weather", response: { output: result } } };
  assert.equal((await chat.sendMessage({ message: [reply] })).text, answer);
  assert.ok(chat.getHistory().length > 4);
}

// Its own loop of calls, with a tool that is declared by a JSON schema.
{
  const parametersJsonSchema = { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } };
  const tool = {
    tool: async () => ({ functionDeclarations: [{ ...described, parametersJsonSchema }] }),
    callTool: async (calls) => {
      assert.deepEqual(calls.map((f) => f.args), [call]);
      return [{ functionResponse: { id: calls[0].id, name: calls[0].name, response: { output: result } } }];
    },
  };
  const said = await client.models.generateContent({
    model, contents: [{ role: "user", parts: [picture, { text: task }] }], config: { systemInstruction: system, tools: [tool] },
  });
  assert.equal(said.text, answer);
}

{
  const mode = FunctionCallingConfigMode.ANY;
  const forced = await client.models.generateContent({
    model, contents: "hello", config: { tools, toolConfig: { functionCallingConfig: { mode, allowedFunctionNames: ["get_weather"] } } },
  });
  assert.equal(forced.functionCalls[0].name, "get_weather");
  assert.ok("city" in forced.functionCalls[0].args);
}

{
  const responseSchema = {
    type: Type.OBJECT, required: ["sure", "word"], propertyOrdering: ["word", "sure"],
    properties: { sure: { type: Type.BOOLEAN }, word: { type: Type.STRING, enum: ["yes", "no"] } },
  };
  const ask = async (more) => (await client.models.generateContent({
    model, contents: "Is it so?", config: { temperature: 0, topP: 0.9, topK: 40, seed: 1, maxOutputTokens: 200, ...more },
  })).text;
  const schema = await ask({ responseMimeType: "application/json", responseSchema });
  assert.deepEqual(Object.keys(JSON.parse(schema)), ["word", "sure"]);
  const responseJsonSchema = { enum: ["yes", "no"] };
  assert.match(await ask({ responseMimeType: "application/json", responseJsonSchema }), /^"(yes|no)"$/);
  assert.match(await ask({ responseMimeType: "text/x.enum", responseSchema: { type: Type.STRING, enum: ["yes", "no"] } }), /^(yes|no)$/);
}

{
  const contents = "replay:plain please";
  const said = await client.models.generateContent({
    model, contents,
    config: { responseLogprobs: true, logprobs: 2, candidateCount: 2, thinkingConfig: { thinkingLevel: ThinkingLevel.LOW } },
  });
  assert.deepEqual(said.candidates.map((c) => c.content.parts[0].text), Array(2).fill("This is a plain answer."));
  const { chosenCandidates, topCandidates } = said.candidates[0].logprobsResult;
  assert.ok(chosenCandidates.map((t) => t.token).join("").startsWith(said.text));
  assert.equal(topCandidates[0].candidates.length, 2);
  const { totalTokens } = await client.models.countTokens({ model, contents });
  assert.equal(totalTokens, said.usageMetadata.promptTokenCount);
}

{
  const { embeddings } = await client.models.embedContent({ model, contents: ["one", "two"], config: { outputDimensionality: 8 } });
  assert.deepEqual(embeddings.map((e) => e.values.length), [8, 8]);
  const listed = [];
  for await (const found of await client.models.list()) listed.push(found);
  assert.ok(listed[0].name.startsWith("models/") && listed[0].inputTokenLimit > 0);
  assert.ok(listed[0].supportedActions.includes("generateContent"));
  assert.equal((await client.models.get({ model: listed[0].name })).displayName, listed[0].displayName);
}

// An answer that is broken off, and what is wrong.
{
  const abort = new AbortController();
  const stream = await client.models.generateContentStream({ model, contents: "hello", config: { abortSignal: abort.signal } });
  abort.abort();
  await assert.rejects(async () => { for await (const part of stream) void part; });
  const wrong = (error) => error.name === "ApiError" && error.status === 400 && /generationConfig.temperature/.test(error.message);
  await assert.rejects(client.models.generateContent({ model, contents: "hello", config: { temperature: 9 } }), wrong);
  const config = { cachedContent: "cachedContents/x" };
  await assert.rejects(client.models.generateContent({ model, contents: "hello", config }), /cachedContent/);
}
