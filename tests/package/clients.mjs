// One question to a server by each of the clients that people use.
// usage: node clients.mjs URL MODEL
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const messages = [{ role: "user", content: "Who are you?" }];

const ask = {
    async openai() {
        const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none" });
        return (await client.chat.completions.create({ model, messages, max_tokens: 40 })).choices[0].message.content;
    },
    async anthropic() {
        const client = new Anthropic({ baseURL: url, apiKey: "none" });
        return (await client.messages.create({ model, messages, max_tokens: 40 })).content[0].text;
    },
    async ollama() {
        const client = new Ollama({ host: url });
        let text = "";
        for await (const part of await client.chat({ model, messages, stream: true, options: { num_predict: 40 } }))
            text += part.message.content;
        return text;
    },
};

for (const [name, question] of Object.entries(ask)) {
    const text = await question();
    if (!text) throw new Error(`${name} got nothing`);
    console.log(`${name}: ${text}`);
}
