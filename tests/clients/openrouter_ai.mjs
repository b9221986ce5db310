// OpenRouter's provider for Vercel's AI SDK.

import { complete } from "./ai_task.mjs";
import { load, url } from "./common.mjs";

const { createOpenRouter } = await load("@openrouter/ai-sdk-provider");
const provider = createOpenRouter({ baseURL: url + "/v1", apiKey: "none", compatibility: "strict" });

await complete(await load("ai-6"), provider.chat("any"));
