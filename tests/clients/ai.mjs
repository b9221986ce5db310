// Vercel's AI SDK with two of its providers: for servers that speak as OpenAI does, and Anthropic's.

import { complete } from "./ai_task.mjs";
import { load, url } from "./common.mjs";

const sdk = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createAnthropic } = await load("@ai-sdk/anthropic");

await complete(sdk, createOpenAICompatible({ name: "motet", baseURL: url + "/v1", includeUsage: true })("any"));
await complete(sdk, createAnthropic({ baseURL: url + "/v1", apiKey: "none" })("any"));
